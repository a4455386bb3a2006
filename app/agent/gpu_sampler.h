// What the island's GPUs do and who uses them, asked every few seconds while a trainer runs or a rule of the owner's
// wants to know: by a child process (net/check/gpu_reading.h), for the agent itself never holds a GPU and a driver may
// hang. A machine without GPUs is asked once for each list of them.
//
// Owned by the agent, whose loop calls it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "app/config/gpu_list.h"
#include "net/base/abort_signal.h"
#include "net/base/mutex.h"
#include "net/check/gpu_probe.h"
#include "net/check/gpu_reading.h"

namespace atl {

class GpuSampler {
 public:
  // On the sampler's thread.
  using Tell = std::function<void(const std::vector<GpuReading>& gpus)>;

  GpuSampler(GpuProbe probe, std::chrono::milliseconds period, Tell tell);
  ~GpuSampler();

  // Those that are asked from now on; empty: none.
  void watch(const std::optional<GpuList>& gpus);
  // Why they cannot be asked now; empty: they can, or nobody wanted it.
  std::string problem() const;

 private:
  // kNever: there is no GPU that could be asked, until others are to be.
  enum class Next { kGoOn, kRetry, kNever };
  void run(const std::stop_token& stop);
  Next sample(const GpuList& gpus, const AbortSignal& abort);
  void set_problem(std::string problem);

  const GpuProbe probe_;
  const std::chrono::milliseconds period_;
  const Tell tell_;

  mutable Mutex mutex_;
  StoppableCondVar changed_;
  std::optional<GpuList> watched_ ATOLL_GUARDED_BY(mutex_);
  std::string problem_ ATOLL_GUARDED_BY(mutex_);
  std::shared_ptr<AbortSignal> asking_ ATOLL_GUARDED_BY(mutex_);  // of the child that runs
  std::jthread thread_;                                           // last
};

}  // namespace atl
