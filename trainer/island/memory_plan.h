// How an island fits into the memory that there is: how many sequences its ranks compute at once. Made before the
// engine is. Plain values; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "net/model/memory_needs.h"
#include "net/wire/run_config.h"

namespace atl {

struct MemoryPlan {
  std::uint32_t micro_batch = 1;  // sequences that a rank computes at once
  std::uint32_t share = 1;        // that it has in a step
  bool chosen_by_owner = false;
  MemoryNeeds needs;
  std::uint64_t available = 0;  // bytes

  std::string log_line() const;  // key=value
  // For the owner, when it will not do; else empty. The island goes on: what is in swap is slow, not lost.
  std::string trouble() const;
};

MemoryPlan plan_memory(const ModelConfig& model, const RunConfig& run, IslandShape island, std::uint64_t available);

// What this process may hold in all, with what it holds already.
std::uint64_t memory_there_is();

}  // namespace atl
