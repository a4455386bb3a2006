#include "trainer/island/past_watch.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "net/https/hub_get.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kRequestTime{20};
constexpr std::chrono::seconds kEndTime{3};
// What it costs hub and island: 512 bytes a second, unless the run is young.
constexpr double kBytesPerSecond = 512;
constexpr Seconds kLeastPause{5}, kMostPause{300};
constexpr Seconds kRetry{60};

}  // namespace

PastWatch::PastWatch(Surroundings around) : around_(std::move(around)) {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

PastWatch::~PastWatch() {
  thread_.request_stop();
  abort_.raise("the island ends");
  thread_.join();
}

void PastWatch::welcomed(std::uint32_t inner_steps) {
  {
    MutexLock lock(mutex_);
    inner_steps_ = inner_steps;
    news_ = true;
  }
  changed_.notify_all();
}

void PastWatch::committed() {
  {
    MutexLock lock(mutex_);
    news_ = true;
  }
  changed_.notify_all();
}

void PastWatch::ask_at_the_end() {
  MutexLock lock(mutex_);
  if (inner_steps_ == 0) return;
  const std::uint64_t mine = begun_ + 1;
  news_ = at_once_ = true;
  changed_.notify_all();
  (void)changed_.wait(lock, std::stop_token(), Deadline::after(kEndTime),
                      [&]() ATOLL_REQUIRES(mutex_) { return over_ >= mine; });
}

void PastWatch::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::uint32_t inner_steps = 0;
    {
      MutexLock lock(mutex_);
      wait_turn(lock, stop);
      news_ = at_once_ = false;
      ++begun_;
      inner_steps = inner_steps_;
    }
    if (stop.stop_requested()) return;
    look(inner_steps);
    {
      MutexLock lock(mutex_);
      over_ = begun_;
    }
    changed_.notify_all();
  }
}

void PastWatch::wait_turn(MutexLock& lock, const std::stop_token& stop) {
  (void)changed_.wait(lock, stop, [this]() ATOLL_REQUIRES(mutex_) { return news_ && inner_steps_ > 0; });
  (void)changed_.wait(lock, stop, Deadline::at(turn_), [this]() ATOLL_REQUIRES(mutex_) { return at_once_; });
}

void PastWatch::look(std::uint32_t inner_steps) {
  const auto answer =
      get_from_hub(around_.self, around_.hub, kPastPath, kMaxPastBytes, Deadline::after(kRequestTime), abort_);
  auto past = answer.ok() ? decode_past(*answer) : Result<ToldPast>(answer.error());
  Seconds pause = kRetry;
  if (past.ok()) {
    refusal_.clear();
    pause = std::clamp(Seconds(static_cast<double>(answer->size()) / kBytesPerSecond), kLeastPause, kMostPause);
    around_.publish(event::PastTold{around_.self.run, inner_steps, std::move(*past)});
  } else if (!abort_.raised() && past.error().message != refusal_) {
    refusal_ = past.error().message;
    spdlog::warn("past error=\"{}\"", refusal_);
  }
  MutexLock lock(mutex_);
  turn_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(pause);
  // A hub that tells no past, or a wrong one, is asked when there is more to tell; one that did not answer, again.
  if (!past.ok() && past.error().code != ErrorCode::kProtocol) news_ = true;
}

}  // namespace atl
