// How an island fits into the machine that there is: over how many local ranks it computes, how many sequences each has
// at once, and what is computed again in the backward pass. Made before the engine is. Plain values; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "net/control/words.h"
#include "net/step/memory_needs.h"
#include "net/wire/run_config.h"

namespace atl {

// What its owner chose; 0 and kAuto: nothing.
struct IslandChoice {
  int local_ranks = 0;
  int micro_batch = 0;
  int threads = 1;  // that there are to compute with
  PrecisionChoice precision = PrecisionChoice::kAuto;
  bool keeps_work = false;  // of open rounds, now and then (work_keeper.h)
};

struct MemoryPlan {
  IslandShape island;            // with everything chosen
  std::uint32_t share = 1;       // sequences of a rank in a step
  bool chosen_by_owner = false;  // the micro-batch
  // bf16 was asked for, and this processor would have to imitate it: it computes in fp32.
  bool lacks_bf16 = false;
  std::uint64_t gpu_bytes = 0;  // of each GPU, where they compute; needs are then the machine's beside them
  std::uint64_t gpu_available = 0;
  MemoryNeeds needs;
  std::uint64_t available = 0;  // bytes

  std::string log_line() const;     // key=value
  std::string gpu_trouble() const;  // when the GPUs cannot hold it; else empty
  // For the owner, when it will not do; else empty. The island goes on: what is in swap is slow, not lost.
  std::string trouble() const;
};

// A rank a thread, but no more than there are sequences, and than fit: fewer ranks hold fewer activations at once.
MemoryPlan plan_memory(const ModelConfig& model, const RunConfig& run, const IslandChoice& choice,
                       std::uint64_t available);

// On so many GPUs, of which each has so many bytes free: a rank each, in bf16 unless the owner chose fp32.
MemoryPlan plan_gpu_memory(const ModelConfig& model, const RunConfig& run, const IslandChoice& choice, int gpus,
                           std::uint64_t gpu_available, std::uint64_t available);

struct HostMemory {             // bytes that this process may hold in all
  std::uint64_t total = 0;      // at best
  std::uint64_t available = 0;  // now, with what it holds already
};
// The kernel's word; without one as much as there can be.
HostMemory memory_there_is();

}  // namespace atl
