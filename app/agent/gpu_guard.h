// Keeps GPUs within what their owner allows: a power limit while a trainer runs, and no trainer while one is too hot.
// They are asked and set by a child process (net/check/gpu_probe.h), on a thread of the guard's: the agent itself never
// holds a GPU. What cannot be read or set is a warning, and training goes on.
//
// Owned by the agent, whose loop calls it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "app/agent/heat_watch.h"
#include "app/config/gpu_list.h"
#include "net/base/abort_signal.h"
#include "net/base/mutex.h"
#include "net/check/gpu_power.h"
#include "net/control/events.h"

namespace atl {

struct GpuLimits {
  GpuProbe probe = {};
  std::optional<double> power_watts = {};  // of each GPU
  std::optional<double> celsius = {};
  std::chrono::milliseconds period{10'000};  // between two readings of the temperatures

  bool any() const { return power_watts || celsius; }
};

class GpuGuard {
 public:
  using Publish = std::function<void(const event::GpuAlert& alert)>;

  // `power_file`: where the power limits of before are written down while there are others, for the next agent should
  // this one be killed. `publish` is called on the guard's thread and outlives it.
  GpuGuard(GpuLimits limits, std::filesystem::path power_file, Publish publish);
  ~GpuGuard();  // restores the power limits, for which the probe has GpuProbe::list_time

  // A trainer runs on these GPUs; empty: none does.
  void set_training(const std::optional<GpuList>& gpus);
  bool too_hot() const;
  std::string warning() const;  // for the owner; empty: none

 private:
  void run(const std::stop_token& stop);
  void keep_power(bool training, const GpuList& gpus);
  void limit_power(const GpuList& gpus);
  void restore_power();
  void keep_temperature(bool training, const GpuList& gpus);
  void tell_heat(unsigned gpu, double celsius);
  void warn(std::string GpuGuard::*of, std::string text);

  const GpuLimits limits_;
  const std::filesystem::path power_file_;
  const Publish publish_;
  AbortSignal stop_;  // of a reading under way
  std::optional<HeatWatch> heat_;
  std::optional<GpuList> limited_;  // whose power is limited now

  mutable Mutex mutex_;
  StoppableCondVar changed_;
  std::optional<GpuList> training_ ATOLL_GUARDED_BY(mutex_);
  GpuList gpus_ ATOLL_GUARDED_BY(mutex_);  // of the last trainer
  bool too_hot_ ATOLL_GUARDED_BY(mutex_) = false;
  std::string power_warning_ ATOLL_GUARDED_BY(mutex_), heat_warning_ ATOLL_GUARDED_BY(mutex_);
  std::jthread thread_;  // last
};

}  // namespace atl
