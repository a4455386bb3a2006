// What a run costs an island, as it is told before a join. In bytes; plain values.
#pragma once

#include <cstdint>

namespace atl {

struct RunCosts {
  std::uint64_t round = 0;               // sent each round at most, and as much received
  std::uint64_t join = 0;                // received to join, beside data
  std::uint64_t disk = 0;                // held at most
  std::uint64_t memory = 0;              // of main memory, where the processor computes one sequence at once
  std::uint64_t memory_beside_gpus = 0;  // of main memory, where GPUs compute
  std::uint64_t gpu_memory = 0;          // of the one GPU that computes
};

}  // namespace atl
