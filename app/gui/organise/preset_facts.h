// What a run preset asks of those who join: for people who choose one. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/base/result.h"

namespace atl {

struct PresetFacts {
  std::string name;
  std::uint64_t parameters = 0;
  std::uint64_t payload_bytes = 0;  // that an island sends about twice in each synchronisation
  // Of an island that computes on its CPU: at least, and what it takes where there is as much.
  double memory_bytes = 0, usual_memory_bytes = 0;
  std::uint32_t inner_steps = 0;
  std::uint64_t tokens_per_step = 0;
  std::uint32_t min_islands = 1;
};

Result<PresetFacts> preset_facts(const std::string& name);
std::vector<std::string> run_preset_names();

}  // namespace atl
