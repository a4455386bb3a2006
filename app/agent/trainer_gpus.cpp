#include "app/agent/trainer_gpus.h"

namespace atl {

TrainerGpus::TrainerGpus(const AgentHome& home, const GpuLimits& limits, std::chrono::milliseconds sample_period,
                         GpuGuard::Publish publish, GpuSampler::Tell sampled)
    : home_(home) {
  const std::filesystem::path power_file = home.gpu_power_file();
  if (limits.any() || std::filesystem::exists(power_file)) guard_.emplace(limits, power_file, std::move(publish));
  if (!limits.probe.program.empty()) sampler_.emplace(limits.probe, sample_period, std::move(sampled));
}

Result<GpuList> TrainerGpus::of_island(const AgentHome& home) {
  ATOLL_ASSIGN_OR_RETURN(const JoinFile join, load_join_file(home.island.join_file()));
  return parse_gpu_list(join.gpus);
}

// A join file that cannot be read leaves no GPU unguarded.
void TrainerGpus::set_training(bool trainer_runs) {
  if (!guard_ && !sampler_) return;
  const auto gpus = of_island(home_);
  const auto training = trainer_runs ? std::optional(gpus.ok() ? *gpus : GpuList{}) : std::nullopt;
  if (guard_) guard_->set_training(training);
  if (sampler_) sampler_->set_training(training);
}

}  // namespace atl
