#include "app/agent/gpu_guard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <cmath>
#include <sstream>

#include "net/base/file.h"
#include "net/base/mutex.h"

namespace atl {
namespace {

constexpr double kSameWatts = 0.5;

// A line each, as the probe takes them.
Status save_power(const std::filesystem::path& file, const std::vector<GpuPower>& limits) {
  std::string text;
  for (const GpuPower& limit : limits) text += to_string(limit) + "\n";
  return write_file_atomically(file, text, FileMode::kPrivate);
}

// What cannot be read is no limit of before: better none than a wrong one.
std::vector<GpuPower> load_power(const std::filesystem::path& file) {
  std::vector<GpuPower> limits;
  const auto text = read_file(file, 64 * kMostGpus);
  std::istringstream lines(text.ok() ? *text : std::string());
  for (std::string line; std::getline(lines, line);) {
    if (const auto limit = parse_gpu_power(line); limit.ok()) limits.push_back(*limit);
  }
  return limits;
}

}  // namespace

GpuGuard::GpuGuard(GpuLimits limits, std::filesystem::path power_file, Publish publish)
    : limits_(std::move(limits)), power_file_(std::move(power_file)), publish_(std::move(publish)) {
  if (limits_.celsius) heat_.emplace(*limits_.celsius);
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

GpuGuard::~GpuGuard() {
  stop_.raise("the agent ends");
  thread_.request_stop();
}

void GpuGuard::set_training(const std::optional<GpuList>& gpus) {
  const MutexLock lock(mutex_);
  if (gpus == training_) return;
  training_ = gpus;
  if (gpus) gpus_ = *gpus;
  changed_.notify_all();
}

bool GpuGuard::too_hot() const {
  const MutexLock lock(mutex_);
  return too_hot_;
}

std::string GpuGuard::warning() const {
  const MutexLock lock(mutex_);
  return power_warning_.empty() ? heat_warning_ : power_warning_;
}

void GpuGuard::warn(std::string GpuGuard::*of, std::string text) {
  const MutexLock lock(mutex_);
  if (text != this->*of && !text.empty()) spdlog::warn("gpu warning=\"{}\"", text);
  this->*of = std::move(text);
}

void GpuGuard::run(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  while (!stop.stop_requested()) {
    const std::optional<GpuList> training = training_;
    const GpuList gpus = gpus_;
    lock.unlock();
    keep_power(training.has_value(), gpus);
    keep_temperature(training.has_value(), gpus);
    lock.lock();
    changed_.wait(lock, stop, Deadline::after(limits_.period),
                  [&]() ATOLL_REQUIRES(mutex_) { return training_ != training; });
  }
  lock.unlock();
  restore_power();
}

// ---- power

void GpuGuard::keep_power(bool training, const GpuList& gpus) {
  if (!training) {
    restore_power();
  } else if (limits_.power_watts && limited_ != gpus) {
    limit_power(gpus);
  }
}

void GpuGuard::limit_power(const GpuList& gpus) {
  restore_power();  // of others, or what an agent before left behind
  const GpuFacts facts = list_gpus(limits_.probe, stop_);
  std::vector<GpuPower> before, wanted;
  for (unsigned gpu = 0; gpu < facts.devices.size(); ++gpu) {
    if (!gpus.contains(gpu)) continue;
    wanted.push_back({gpu, *limits_.power_watts});
    if (const auto watts = facts.devices[gpu].power_limit_watts) before.push_back({gpu, *watts});
  }
  limited_ = gpus;
  std::vector<std::string> problems{facts.problem};
  if (facts.problem.empty() && wanted.empty()) problems = {"there is no such GPU"};
  if (facts.problem.empty() && !wanted.empty()) {
    const Status kept = save_power(power_file_, before);
    problems = kept.ok() ? limit_gpu_power(limits_.probe, wanted, stop_) : std::vector{kept.error().message};
  }
  if (stop_.raised() || problems.empty()) return warn(&GpuGuard::power_warning_, {});
  std::string text = fmt::format("limits.gpu_power is not in force (to set it needs root): {}. Training goes on",
                                 fmt::join(problems, ", "));
  publish_({.kind = GpuAlertKind::kPower, .cap_watts = limits_.power_watts, .text = text});
  warn(&GpuGuard::power_warning_, std::move(text));
}

void GpuGuard::restore_power() {
  limited_.reset();
  const std::vector<GpuPower> before = load_power(power_file_);
  if (before.empty()) return;
  const AbortSignal whatever_happens;
  const GpuFacts facts = list_gpus(limits_.probe, whatever_happens);
  std::vector<GpuPower> changed;
  for (const GpuPower& power : before) {
    if (power.gpu >= facts.devices.size()) continue;
    const double now = facts.devices[power.gpu].power_limit_watts.value_or(0);
    if (std::abs(now - power.watts) > kSameWatts) changed.push_back(power);
  }
  const auto problems =
      changed.empty() ? std::vector<std::string>() : limit_gpu_power(limits_.probe, changed, whatever_happens);
  std::error_code ignored;
  if (problems.empty() && facts.problem.empty()) std::filesystem::remove(power_file_, ignored);
  warn(&GpuGuard::power_warning_,
       problems.empty() ? std::string()
                        : fmt::format("the power limits of before are not restored: {}", fmt::join(problems, ", ")));
}

// ---- temperature

void GpuGuard::keep_temperature(bool training, const GpuList& gpus) {
  if (!heat_ || (!training && !heat_->too_hot())) return;
  const GpuFacts facts = list_gpus(limits_.probe, stop_);
  if (stop_.raised()) return;
  std::optional<unsigned> hottest;
  for (unsigned gpu = 0; gpu < facts.devices.size(); ++gpu) {
    const auto celsius = facts.devices[gpu].celsius;
    if (gpus.contains(gpu) && celsius && (!hottest || *celsius > facts.devices[*hottest].celsius)) hottest = gpu;
  }
  if (!hottest) {
    return warn(&GpuGuard::heat_warning_,
                fmt::format("limits.gpu_temperature is not watched: {}",
                            facts.problem.empty() ? "no GPU tells its temperature" : facts.problem));
  }
  const double celsius = *facts.devices[*hottest].celsius;
  const bool changed = heat_->next(celsius);
  warn(&GpuGuard::heat_warning_,
       !heat_->too_hot()
           ? std::string()
           : fmt::format("GPU {} is too hot (limits.gpu_temperature is {:.0f} C); training goes on below "
                         "{:.0f} C",
                         *hottest, heat_->cap_celsius(), heat_->cap_celsius() - HeatWatch::kHysteresisCelsius));
  if (changed) tell_heat(*hottest, celsius);
}

void GpuGuard::tell_heat(unsigned gpu, double celsius) {
  {
    const MutexLock lock(mutex_);
    too_hot_ = heat_->too_hot();
  }
  spdlog::warn("gpu={} celsius={} cap_celsius={} pauses={}", gpu, celsius, heat_->cap_celsius(), heat_->too_hot());
  publish_({.kind = GpuAlertKind::kTemperature,
            .gpu = gpu,
            .celsius = celsius,
            .cap_celsius = heat_->cap_celsius(),
            .pauses = heat_->too_hot()});
}

}  // namespace atl
