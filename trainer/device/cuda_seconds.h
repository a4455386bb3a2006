// How long the parts of a step take on one GPU's compute stream: events with times between its operations. Owned and
// used by the device's thread.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "net/step/step_part.h"
#include "trainer/device/cuda_check.h"

namespace atl {

class CudaSeconds {
 public:
  // From what is enqueued on `stream` now.
  void begin(cudaStream_t stream);
  // What was enqueued on it since the last call is of `part`.
  void tick(StepPart part, cudaStream_t stream);
  void end() { on_ = false; }
  // Of what was enqueued between, all of which is done. Nothing: it was not begun, or too much was enqueued.
  std::optional<StepSeconds> take();
  void forget() {
    on_ = false;
    parts_.clear();
  }

 private:
  // A step of 100 blocks in 8 micro-batches; beyond it events would take memory that nobody planned.
  static constexpr std::size_t kMostTicks = 65536;
  void record(StepPart part, cudaStream_t stream);

  bool on_ = false;
  std::vector<UniqueEvent> events_;  // more than are used, from earlier steps
  std::vector<StepPart> parts_;      // that each event ends; of the first, none. Empty: nothing is measured
};

}  // namespace atl
