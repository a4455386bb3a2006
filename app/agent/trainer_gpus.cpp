#include "app/agent/trainer_gpus.h"

#include <spdlog/spdlog.h>

#include <cstdlib>

#include "app/agent/gpu_users.h"
#include "net/base/unix_time.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kReadingIsNews{30};

// That the island trains on. A join file that cannot be read leaves no GPU unguarded.
GpuList gpus_of(const AgentHome& home) {
  const auto join = load_join_file(home.island.join_file());
  if (!join.ok()) return {};
  if (join->device == DeviceChoice::kProcessor) return {std::vector<unsigned>{}};
  const auto gpus = parse_gpu_list(join->gpus);
  return gpus.ok() ? *gpus : GpuList{};
}

bool any(const GpuList& gpus) { return !gpus.numbers || !gpus.numbers->empty(); }

}  // namespace

TrainerGpus::TrainerGpus(const AgentHome& home, const GpuLimits& limits, std::chrono::milliseconds sample_period,
                         Tell tell)
    : home_(home), probe_(limits.probe), tell_(std::move(tell)), watts_(limits.power_watts) {
  const std::filesystem::path power_file = home.gpu_power_file();
  if (watts_ || std::filesystem::exists(power_file)) guard_.emplace(limits, power_file, tell_.alert);
  if (auto paused = load_paused_gpus(paused_gpus_file(home.state)); paused.ok()) {
    paused_ = std::move(*paused);
  } else {
    spdlog::warn("paused_gpus kept=false error=\"{}\"", paused.error().message);
  }
  if (probe_.program.empty()) return;
  sampler_.emplace(probe_, sample_period, [this](const std::vector<GpuReading>& gpus) { take(gpus); });
}

Result<GpuList> TrainerGpus::named_by(const JoinFile& join) {
  ATOLL_ASSIGN_OR_RETURN(GpuList gpus, parse_gpu_list(join.gpus));
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (gpus.numbers || visible == nullptr || *visible == 0) return gpus;
  auto ours = parse_gpu_list(visible);
  if (ours.ok()) return ours;
  return Error{
      ErrorCode::kInvalidArgument,
      "the agent was started with a CUDA_VISIBLE_DEVICES that is no list of numbers; say by numbers which GPUs "
      "to use: atoll config set island.gpus 0-3"};
}

Result<GpuList> TrainerGpus::usable() const {
  ATOLL_ASSIGN_OR_RETURN(const JoinFile join, load_join_file(home_.island.join_file()));
  const std::vector<unsigned> paused = paused_.at(unix_seconds_now()).numbers();
  if (paused.empty()) return parse_gpu_list(join.gpus);
  ATOLL_ASSIGN_OR_RETURN(const GpuList gpus, named_by(join));
  return gpus.without(paused);
}

void TrainerGpus::set_trainer(pid_t pid) {
  {
    const MutexLock lock(mutex_);
    trainer_ = pid;
  }
  trainer_runs_ = pid != 0;
  refresh();
  begun_with_ = used_;
}

void TrainerGpus::use(const std::string& gpus) {
  auto join = load_join_file(home_.island.join_file());
  if (!join.ok()) return;
  join->gpus = gpus;
  const Status kept = save_join_file(home_.island.join_file(), *join);
  if (!kept.ok()) spdlog::warn("gpus={} kept=false error=\"{}\"", gpus, kept.error().message);
  refresh();
}

void TrainerGpus::set_paused(PausedGpus paused) {
  if (paused == paused_) return;
  paused_ = std::move(paused);
  refresh();
}

void TrainerGpus::look_at_home() { refresh(); }

void TrainerGpus::turn() {
  if (paused_.at(unix_seconds_now()) != paused_now_) refresh();
}

void TrainerGpus::set_power(std::optional<double> watts) {
  watts_ = watts;
  if (guard_) {
    guard_->set_power(watts);
  } else if (watts) {
    guard_.emplace(GpuLimits{probe_, watts}, home_.gpu_power_file(), tell_.alert);
  }
  refresh();
}

void TrainerGpus::read_for_rules(bool wanted) {
  rules_read_ = wanted;
  refresh();
}

void TrainerGpus::refresh() {
  const GpuList all = gpus_of(home_);
  paused_now_ = paused_.at(unix_seconds_now());
  used_ = all.without(paused_now_.numbers());
  {
    const MutexLock lock(mutex_);
    read_ = used_;
  }
  if (guard_) guard_->set_training(trainer_runs_ && any(used_) ? std::optional(used_) : std::nullopt);
  // Who looks on sees those that are paused, too.
  watched_ = sampler_ && (trainer_runs_ || rules_read_) && any(all);
  if (sampler_) sampler_->watch(watched_ ? std::optional(all) : std::nullopt);
}

bool TrainerGpus::known() const {
  if (!watched_ || !problem().empty()) return true;
  const MutexLock lock(mutex_);
  return read_at_ != Clock::time_point();
}

// On the sampler's thread.
void TrainerGpus::take(const std::vector<GpuReading>& gpus) {
  pid_t trainer = 0;
  std::vector<GpuSample> samples;
  std::vector<GpuReading> read;
  {
    const MutexLock lock(mutex_);
    trainer = trainer_;
    for (const GpuReading& gpu : gpus) {
      samples.push_back(gpu.now);
      if (read_.contains(gpu.now.index)) read.push_back(gpu);
    }
  }
  GpusReading reading{.others = others_on(read, trainer)};
  for (const GpuReading& gpu : read) {
    const auto& celsius = gpu.now.temperature_celsius;
    if (celsius && (!reading.hottest || *celsius > reading.hottest->celsius)) {
      reading.hottest = {gpu.now.index, *celsius};
    }
    if (gpu.now.power_watts) reading.watts = reading.watts.value_or(0) + *gpu.now.power_watts;
  }
  {
    const MutexLock lock(mutex_);
    reading_ = std::move(reading);
    read_at_ = Clock::now();
  }
  if (trainer != 0) tell_.sampled(samples);
}

GpusReading TrainerGpus::reading() const {
  const MutexLock lock(mutex_);
  return Clock::now() - read_at_ < kReadingIsNews ? reading_ : GpusReading{};
}

}  // namespace atl
