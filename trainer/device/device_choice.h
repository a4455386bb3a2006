// Whether GPUs compute or this processor: the one rule, for what trains (trainer/island/island_engine.h) and for what
// reads and writes texts (trainer/program/inference_source.h). Blocks; any thread.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string>

#include "net/base/result.h"
#include "net/control/words.h"
#include "trainer/device/gpus.h"

namespace atl {

struct DeviceOutcome {
  bool on_gpus = false;  // `make` has made what computes on them; else the processor is to
  // For the owner: why GPUs that are there, all or some, are left idle though they may be used; empty: none is.
  std::string trouble;
};

// A driver that hangs blocks whoever asks it: `say` gets a sentence for the owner, on a thread of its own, when a look
// has taken so long.
struct SlowGpus {
  std::function<void(const std::string& text)> say;
  std::chrono::milliseconds after = std::chrono::seconds(60);
};

// `make` sets up what computes, on those GPUs, and keeps it; after its error nothing of it is left. It is called again
// where others have taken memory since the look, with what is left.
//   kProcessor: no GPU is looked at.
//   kAuto: GPUs where there are any. What keeps them from computing is `trouble`; that there are none is not.
//   kGpu: GPUs. What keeps them from computing is the error.
Result<DeviceOutcome> choose_device(DeviceChoice choice, Gpus& gpus,
                                    const std::function<Status(std::span<const UsableGpu>)>& make, SlowGpus slow);

}  // namespace atl
