#include "app/agent/gpu_sampler.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

#include "net/base/mutex.h"

namespace atl {
namespace {

constexpr int kReadings = 120;  // of one child: what it holds of the driver is let go now and then
constexpr std::size_t kMaxBytes = 16u << 20;
constexpr std::chrono::seconds kRetry{60};  // after a child that failed

}  // namespace

GpuSampler::GpuSampler(GpuProbe probe, std::chrono::milliseconds period, Tell tell)
    : probe_(std::move(probe)),
      period_(period),
      tell_(std::move(tell)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

GpuSampler::~GpuSampler() {
  thread_.request_stop();
  const MutexLock lock(mutex_);
  if (asking_) asking_->raise("the agent ends");
}

void GpuSampler::watch(const std::optional<GpuList>& gpus) {
  const MutexLock lock(mutex_);
  if (gpus == watched_) return;
  watched_ = gpus;
  problem_.clear();
  if (asking_) asking_->raise("other GPUs are to be asked, or none");
  changed_.notify_all();
}

std::string GpuSampler::problem() const {
  const MutexLock lock(mutex_);
  return problem_;
}

void GpuSampler::set_problem(std::string problem) {
  const MutexLock lock(mutex_);
  problem_ = std::move(problem);
}

void GpuSampler::run(const std::stop_token& stop) {
  MutexLock lock(mutex_);
  while (!stop.stop_requested()) {
    const std::optional<GpuList> watched = watched_;
    const auto is_another = [&]() ATOLL_REQUIRES(mutex_) { return watched_ != watched; };
    if (!watched) {
      changed_.wait(lock, stop, is_another);
      continue;
    }
    asking_ = std::make_shared<AbortSignal>();
    const auto asking = asking_;
    lock.unlock();
    const Next next = stop.stop_requested() ? Next::kGoOn : sample(*watched, *asking);
    lock.lock();
    asking_.reset();
    if (next == Next::kRetry) changed_.wait(lock, stop, Deadline::after(kRetry), is_another);
    if (next == Next::kNever) changed_.wait(lock, stop, is_another);
  }
}

GpuSampler::Next GpuSampler::sample(const GpuList& gpus, const AbortSignal& abort) {
  const double seconds = Seconds(period_).count();
  ProbeChild child{probe_.program,
                   {"sample", fmt::format("{:.3f}", seconds), fmt::format("{}", kReadings)},
                   Deadline::after(probe_.list_time + (kReadings + 2) * period_),
                   kMaxBytes};
  if (!probe_.nvml.empty()) child.arguments.insert(child.arguments.end(), {"--nvml", probe_.nvml});
  std::string problem;
  bool any = false, none_there = false;
  const Status ended = run_probe_child(child, abort, [&](std::string_view line) {
    auto read = parse_gpu_readings(line);
    if (!read.ok()) {
      problem = read.error().message;
      none_there = read.error().code == ErrorCode::kNotFound;
      return;
    }
    if (!std::exchange(any, true)) set_problem({});
    std::erase_if(*read, [&](const GpuReading& gpu) { return !gpus.contains(gpu.now.index); });
    if (!read->empty()) tell_(*read);
  });
  if (!ended.ok() && ended.error().code != ErrorCode::kAborted) problem = ended.error().message;
  if (!problem.empty()) spdlog::debug("gpu samples end reason=\"{}\"", problem);
  if (problem.empty()) return Next::kGoOn;
  set_problem(problem);
  return any || !none_there ? Next::kRetry : Next::kNever;
}

}  // namespace atl
