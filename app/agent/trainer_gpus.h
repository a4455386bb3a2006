// The GPUs that the island trains on, as its agent looks after them: kept within their owner's power limit while a
// trainer runs (gpu_guard.h), and read for who watches and for the owner's rules (gpu_sampler.h), each only if it is
// asked for. Owned by the agent, whose loop calls it.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "app/agent/gpu_guard.h"
#include "app/agent/gpu_sampler.h"
#include "app/agent/owners_rules.h"
#include "app/agent/paused_gpus.h"
#include "app/config/gpu_list.h"
#include "net/base/deadline.h"
#include "net/base/mutex.h"
#include "net/base/result.h"
#include "net/control/home.h"
#include "net/control/node_state.h"

namespace atl {

class TrainerGpus {
 public:
  struct Tell {  // each on a thread of its own; they outlive this
    GpuGuard::Publish alert;
    std::function<void(const std::vector<GpuSample>& gpus)> sampled;  // while a trainer runs
  };
  TrainerGpus(const AgentHome& home, const GpuLimits& limits, std::chrono::milliseconds sample_period, Tell tell);

  // Those that an island names: "all" are those that this process itself may see. kInvalidArgument where
  // CUDA_VISIBLE_DEVICES names those by other than numbers.
  static Result<GpuList> named_by(const JoinFile& join);
  // Those that a trainer may be started with: of the join file, without those that are paused.
  Result<GpuList> usable() const;
  // A trainer runs that was started with others.
  bool changed() const { return trainer_runs_ && used_ != begun_with_; }

  void set_trainer(pid_t pid);        // 0: none runs
  void use(const std::string& gpus);  // from now on, as island.gpus has it: the membership's list, where there is one
  void set_paused(PausedGpus paused);
  const PausedGpus& paused() const { return paused_; }
  void look_at_home();                          // the join file may be another
  void turn();                                  // some times a second: pauses end
  void set_power(std::optional<double> watts);  // of each GPU, from now on
  void read_for_rules(bool wanted);             // also while no trainer runs
  // What was read last; what is old is not known.
  GpusReading reading() const;
  // They were read once, cannot be, or nobody wants it.
  bool known() const;
  // Why nothing is read; empty: it is, or nobody wants it.
  std::string problem() const { return sampler_ ? sampler_->problem() : "atoll-gpu-probe is not installed"; }
  std::string warning() const { return guard_ ? guard_->warning() : std::string(); }  // for the owner; empty: none

 private:
  void take(const std::vector<GpuReading>& gpus);
  void refresh();

  const AgentHome home_;
  const GpuProbe probe_;
  const Tell tell_;
  std::optional<double> watts_;
  bool rules_read_ = false, watched_ = false, trainer_runs_ = false;
  PausedGpus paused_, paused_now_;
  GpuList used_, begun_with_;  // none: by a trainer on the processor

  mutable Mutex mutex_;
  pid_t trainer_ ATOLL_GUARDED_BY(mutex_) = 0;
  GpuList read_ ATOLL_GUARDED_BY(mutex_);  // that the rules look at
  GpusReading reading_ ATOLL_GUARDED_BY(mutex_);
  Clock::time_point read_at_ ATOLL_GUARDED_BY(mutex_);
  // Last: their threads tell.
  std::optional<GpuGuard> guard_;
  std::optional<GpuSampler> sampler_;
};

}  // namespace atl
