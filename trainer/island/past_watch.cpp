#include "trainer/island/past_watch.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "net/https/hub_get.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kRequestTime{20};
constexpr std::chrono::seconds kEndTime{3};
// What it costs hub and island: 512 bytes a second, unless the run is young.
constexpr double kBytesPerSecond = 512;
constexpr Seconds kLeastPause{5};
constexpr Seconds kRetry{60};
constexpr std::uint64_t kUnderWay = 256;  // rounds

// The newest outer state that it tells of.
std::uint64_t last_step(const ToldPast& past) {
  std::uint64_t last = past.validations.empty() ? 0 : past.validations.back().outer_step;
  if (!past.rounds.empty()) last = std::max(last, std::uint64_t{past.rounds.back().round} + past.rounds.back().rounds);
  return last;
}

}  // namespace

PastWatch::PastWatch(Surroundings around) : around_(std::move(around)) {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

PastWatch::~PastWatch() {
  thread_.request_stop();
  abort_.raise("the island ends");
  thread_.join();
}

void PastWatch::hear(const HubMessage& message) {
  const auto* welcome = std::get_if<HubWelcome>(&message);
  const auto* commit = std::get_if<HubCommit>(&message);
  const auto* recover = std::get_if<HubRecover>(&message);
  MutexLock lock(mutex_);
  if (welcome != nullptr) inner_steps_ = welcome->run.inner_steps;
  if (welcome != nullptr) newest_ = welcome->outer_step;  // it may have gone back
  if (commit != nullptr) newest_ = std::max(newest_, OuterStep{commit->round.value + 1});
  if (recover != nullptr) newest_ = std::max(newest_, recover->outer_step);
  if (welcome == nullptr && commit == nullptr) return;
  news_ = true;
  lock.unlock();
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

// Of rounds that the hub has not spoken of it knows nothing either, but for what is under way to this island.
Result<ToldPast> PastWatch::ask() {
  ATOLL_ASSIGN_OR_RETURN(const std::string answer, get_from_hub(around_.self, around_.hub, kPastPath, kMaxPastBytes,
                                                                Deadline::after(kRequestTime), abort_));
  ATOLL_ASSIGN_OR_RETURN(ToldPast past, decode_past(answer));
  MutexLock lock(mutex_);
  if (last_step(past) <= std::uint64_t{newest_.value} + kUnderWay) return past;
  return Error{ErrorCode::kProtocol, fmt::format("the run's past as its hub tells it: it goes to round {}, and {} were "
                                                 "committed",
                                                 last_step(past), newest_.value)};
}

void PastWatch::look(std::uint32_t inner_steps) {
  auto past = ask();
  Seconds pause = kRetry;
  if (past.ok()) {
    refusal_.clear();
    const auto bytes = static_cast<double>(encode(*past).size());
    pause = std::max(Seconds(bytes / kBytesPerSecond), kLeastPause);
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
