#include "app/agent/gpu_guard.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <cmath>
#include <sstream>
#include <utility>

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

GpuGuard::GpuGuard(const GpuLimits& limits, std::filesystem::path power_file, Publish publish)
    : probe_(limits.probe),
      power_file_(std::move(power_file)),
      publish_(std::move(publish)),
      watts_(limits.power_watts),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

GpuGuard::~GpuGuard() {
  stop_.raise("the agent ends");
  thread_.request_stop();
}

void GpuGuard::set_training(const std::optional<GpuList>& gpus) {
  const MutexLock lock(mutex_);
  training_ = gpus;
  changed_.notify_all();
}

void GpuGuard::set_power(std::optional<double> watts) {
  const MutexLock lock(mutex_);
  watts_ = watts;
  changed_.notify_all();
}

std::string GpuGuard::warning() const {
  const MutexLock lock(mutex_);
  return warning_;
}

void GpuGuard::warn(std::string text) {
  const MutexLock lock(mutex_);
  if (text != warning_ && !text.empty()) spdlog::warn("gpu warning=\"{}\"", text);
  warning_ = std::move(text);
}

std::optional<GpuGuard::Wanted> GpuGuard::wanted() const {
  return training_ && watts_ ? std::optional(Wanted{*training_, *watts_}) : std::nullopt;
}

void GpuGuard::run(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  bool first = true;  // what an agent before left behind
  std::optional<Wanted> held;
  while (!stop.stop_requested()) {
    const std::optional<Wanted> now = wanted();
    if (std::exchange(first, false) || now != held) {
      lock.unlock();
      restore_power();
      if (now) limit_power(*now);
      lock.lock();
      held = now;
    }
    changed_.wait(lock, stop, [&]() ATOLL_REQUIRES(mutex_) { return wanted() != held; });
  }
  lock.unlock();
  restore_power();
}

void GpuGuard::limit_power(const Wanted& wanted) {
  const GpuFacts facts = list_gpus(probe_, stop_);
  std::vector<GpuPower> before, limits;
  for (unsigned gpu = 0; gpu < facts.devices.size(); ++gpu) {
    if (!wanted.gpus.contains(gpu)) continue;
    limits.push_back({gpu, wanted.watts});
    if (const auto watts = facts.devices[gpu].power_limit_watts) before.push_back({gpu, *watts});
  }
  std::vector<std::string> problems{facts.problem};
  if (facts.problem.empty() && limits.empty()) problems = {"there is no such GPU"};
  if (facts.problem.empty() && !limits.empty()) {
    const Status kept = save_power(power_file_, before);
    problems = kept.ok() ? limit_gpu_power(probe_, limits, stop_) : std::vector{kept.error().message};
  }
  if (stop_.raised() || problems.empty()) return warn({});
  std::string text = fmt::format(
      "limits.gpu_power is not in force (to set it needs root): {}. Training goes on; limits.power pauses it instead",
      fmt::join(problems, ", "));
  publish_({.kind = GpuAlertKind::kPower, .cap_watts = wanted.watts, .text = text});
  warn(std::move(text));
}

void GpuGuard::restore_power() {
  const std::vector<GpuPower> before = load_power(power_file_);
  if (before.empty()) return warn({});
  const AbortSignal whatever_happens;
  const GpuFacts facts = list_gpus(probe_, whatever_happens);
  std::vector<GpuPower> changed;
  for (const GpuPower& power : before) {
    if (power.gpu >= facts.devices.size()) continue;
    const double now = facts.devices[power.gpu].power_limit_watts.value_or(0);
    if (std::abs(now - power.watts) > kSameWatts) changed.push_back(power);
  }
  const auto problems =
      changed.empty() ? std::vector<std::string>() : limit_gpu_power(probe_, changed, whatever_happens);
  std::error_code ignored;
  if (problems.empty() && facts.problem.empty()) std::filesystem::remove(power_file_, ignored);
  warn(problems.empty() ? std::string()
                        : fmt::format("the power limits of before are not restored: {}", fmt::join(problems, ", ")));
}

}  // namespace atl
