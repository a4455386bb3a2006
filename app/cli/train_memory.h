// Whether a machine can ever hold a run that it is to train alone, which nobody else checks it for: what does not fit
// would be killed by the kernel in its first step. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "net/base/result.h"
#include "net/check/facts.h"
#include "net/control/words.h"
#include "net/wire/run_config.h"

namespace atl {

struct TrainMachine {
  std::uint64_t memory_bytes = 0;      // of main memory in all; 0: not known
  bool gpu_kernels = false;            // this build computes on GPUs
  std::function<GpuFacts()> ask_gpus;  // called where they would make the difference; may block for seconds
};

// kInvalidArgument says what there is, what is wanted and what to choose. `micro_batch`: as its owner chose it; none or
// 0: by the memory.
Status check_train_memory(const RunConfig& run, std::optional<int> micro_batch, DeviceChoice device,
                          const TrainMachine& machine);

}  // namespace atl
