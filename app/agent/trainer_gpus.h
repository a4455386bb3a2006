// The GPUs that the island trains on, as its agent looks after them while a trainer runs: kept within their owner's
// limits (gpu_guard.h) and read for who watches (gpu_sampler.h), each only if it is asked for. Owned by the agent,
// whose loop calls it.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "app/agent/gpu_guard.h"
#include "app/agent/gpu_sampler.h"
#include "app/config/gpu_list.h"
#include "net/base/result.h"
#include "net/control/home.h"

namespace atl {

class TrainerGpus {
 public:
  // Each callback is called on a thread of its own and outlives this.
  TrainerGpus(const AgentHome& home, const GpuLimits& limits, std::chrono::milliseconds sample_period,
              GpuGuard::Publish publish, GpuSampler::Tell sampled);

  // As the join file has them.
  static Result<GpuList> of_island(const AgentHome& home);

  void set_training(bool trainer_runs);
  bool too_hot() const { return guard_ && guard_->too_hot(); }
  std::string warning() const { return guard_ ? guard_->warning() : std::string(); }  // for the owner; empty: none

 private:
  const AgentHome home_;
  std::optional<GpuGuard> guard_;
  std::optional<GpuSampler> sampler_;
};

}  // namespace atl
