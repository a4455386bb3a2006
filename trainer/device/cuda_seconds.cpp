#include "trainer/device/cuda_seconds.h"

namespace atl {
namespace {

UniqueEvent make_timed_event() {
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDefault), "an event with a time: cudaEventCreateWithFlags");
  return UniqueEvent(event);
}

}  // namespace

void CudaSeconds::begin(cudaStream_t stream) {
  on_ = true;
  parts_.clear();
  record(StepPart::kCount, stream);
}

void CudaSeconds::tick(StepPart part, cudaStream_t stream) {
  if (!on_) return;
  if (parts_.size() == kMostTicks) {
    forget();
    return;
  }
  record(part, stream);
}

void CudaSeconds::record(StepPart part, cudaStream_t stream) {
  if (events_.size() == parts_.size()) events_.push_back(make_timed_event());
  check_cuda(cudaEventRecord(events_[parts_.size()].get(), stream), "a part of a step: cudaEventRecord");
  parts_.push_back(part);
}

std::optional<StepSeconds> CudaSeconds::take() {
  if (parts_.empty()) return std::nullopt;
  StepSeconds seconds;
  for (std::size_t i = 1; i < parts_.size(); ++i) {
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, events_[i - 1].get(), events_[i].get()),
               "a part of a step: cudaEventElapsedTime");
    seconds[parts_[i]] += static_cast<double>(milliseconds) / 1e3;
  }
  forget();
  return seconds;
}

}  // namespace atl
