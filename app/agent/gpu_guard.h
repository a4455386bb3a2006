// Keeps GPUs within the power that their owner allows while a trainer runs. They are asked and set by a child process
// (net/check/gpu_probe.h), on a thread of the guard's: the agent itself never holds a GPU. What cannot be set is a
// warning, and training goes on.
//
// Owned by the agent, whose loop calls it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "app/config/gpu_list.h"
#include "net/base/abort_signal.h"
#include "net/base/mutex.h"
#include "net/check/gpu_power.h"
#include "net/control/events.h"

namespace atl {

struct GpuLimits {
  GpuProbe probe = {};
  std::optional<double> power_watts = {};  // of each GPU; empty: as the driver has it
};

class GpuGuard {
 public:
  using Publish = std::function<void(const event::GpuAlert& alert)>;

  // `power_file`: where the power limits of before are written down while there are others, for the next agent should
  // this one be killed. `publish` is called on the guard's thread and outlives it.
  GpuGuard(const GpuLimits& limits, std::filesystem::path power_file, Publish publish);
  ~GpuGuard();  // restores the power limits, for which the probe has GpuProbe::list_time

  // A trainer runs on these GPUs; empty: none does.
  void set_training(const std::optional<GpuList>& gpus);
  void set_power(std::optional<double> watts);  // of each, from now on
  std::string warning() const;                  // for the owner; empty: none

 private:
  void run(const std::stop_token& stop);
  // What is to hold: which GPUs are limited to how much.
  struct Wanted {
    GpuList gpus;
    double watts = 0;
    bool operator==(const Wanted&) const = default;
  };
  std::optional<Wanted> wanted() const ATOLL_REQUIRES(mutex_);
  void limit_power(const Wanted& wanted);
  void restore_power();
  void warn(std::string text);

  const GpuProbe probe_;
  const std::filesystem::path power_file_;
  const Publish publish_;
  AbortSignal stop_;  // of a reading under way

  mutable Mutex mutex_;
  StoppableCondVar changed_;
  std::optional<GpuList> training_ ATOLL_GUARDED_BY(mutex_);
  std::optional<double> watts_ ATOLL_GUARDED_BY(mutex_);
  std::string warning_ ATOLL_GUARDED_BY(mutex_);
  std::jthread thread_;  // last
};

}  // namespace atl
