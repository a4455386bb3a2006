// What the trainer's GPUs do, asked every few seconds while it runs: by a child process (net/check/gpu_reading.h), for
// the agent itself never holds a GPU and a driver may hang. A machine without GPUs is asked once for each start of a
// trainer.
//
// Owned by the agent, whose loop calls it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "app/config/gpu_list.h"
#include "net/base/abort_signal.h"
#include "net/base/mutex.h"
#include "net/check/gpu_probe.h"
#include "net/control/node_state.h"

namespace atl {

class GpuSampler {
 public:
  // On the sampler's thread.
  using Tell = std::function<void(const std::vector<GpuSample>& gpus)>;

  GpuSampler(GpuProbe probe, std::chrono::milliseconds period, Tell tell);
  ~GpuSampler();

  // A trainer runs on these GPUs; empty: none does.
  void set_training(const std::optional<GpuList>& gpus);

 private:
  // kNever: there is no GPU that could be asked, until another trainer runs.
  enum class Next { kGoOn, kRetry, kNever };
  void run(const std::stop_token& stop);
  Next sample(const GpuList& gpus, const AbortSignal& abort);

  const GpuProbe probe_;
  const std::chrono::milliseconds period_;
  const Tell tell_;

  Mutex mutex_;
  StoppableCondVar changed_;
  std::optional<GpuList> training_ ATOLL_GUARDED_BY(mutex_);
  std::shared_ptr<AbortSignal> asking_ ATOLL_GUARDED_BY(mutex_);  // of the child that runs
  std::jthread thread_;                                           // last
};

}  // namespace atl
