#include "net/recovery/serving_pace.h"

#include <algorithm>

namespace atl {
namespace {

constexpr std::chrono::milliseconds kBurst{50};  // that was not sent may be made up for
constexpr Seconds kSlice{0.01};                  // of the rate, to be sent at once
constexpr double kLeastSlice = 4096;
constexpr double kServingBesideParts = 0.5;   // of what the owner allows, between attempts
constexpr std::chrono::seconds kIsServed{1};  // since the last turn

}  // namespace

ServingPace::Attempt::Attempt(ServingPace& pace) : pace_(pace) {
  MutexLock lock(pace_.mutex_);
  ++pace_.attempts_;
}

ServingPace::Attempt::~Attempt() {
  MutexLock lock(pace_.mutex_);
  --pace_.attempts_;
}

ServingPace::Part::Part(ServingPace& pace) : pace_(pace) {
  MutexLock lock(pace_.mutex_);
  ++pace_.parts_;
}

ServingPace::Part::~Part() {
  MutexLock lock(pace_.mutex_);
  --pace_.parts_;
}

// What waits for its turn at the old rate is few slices, and stays as it is.
void ServingPace::allow(std::optional<double> upload) {
  MutexLock lock(mutex_);
  upload_ = upload;
}

std::optional<double> ServingPace::allowed() const {
  MutexLock lock(mutex_);
  return upload_;
}

void ServingPace::saw_link(double bytes_per_second) {
  MutexLock lock(mutex_);
  link_ = bytes_per_second;
}

// During attempts. A small limit is shared: whoever joins has a quarter of it at most.
std::optional<double> ServingPace::share_of_owner() const {
  if (!upload_) return std::nullopt;
  return std::max(kShareOfRing * *upload_, std::min(kFloor, *upload_ / 4));
}

std::optional<double> ServingPace::ring_of_owner() const {
  if (!upload_) return std::nullopt;
  return *upload_ - *share_of_owner();
}

std::optional<double> ServingPace::left_to_ring() const {
  MutexLock lock(mutex_);
  return ring_of_owner();
}

std::optional<double> ServingPace::left_to_parts(Clock::time_point now) const {
  MutexLock lock(mutex_);
  if (attempts_ > 0 || !upload_) return ring_of_owner();
  return now - asked_ < kIsServed ? *upload_ * (1 - kServingBesideParts) : *upload_;
}

std::optional<double> ServingPace::rate() const {
  if (attempts_ == 0 && parts_ > 0 && upload_) return *upload_ * kServingBesideParts;
  if (attempts_ == 0) return upload_;
  const double share = std::max(kShareOfRing * link_, kFloor);
  return std::min(share, share_of_owner().value_or(share));
}

ServingPace::Turn ServingPace::next(std::size_t wanted, Clock::time_point now) {
  MutexLock lock(mutex_);
  asked_ = now;
  const std::optional<double> rate = this->rate();
  if (!rate) {
    free_ = now;
    return {std::min(wanted, kMostAtOnce), now};
  }
  const auto slice = static_cast<std::size_t>(std::max(kLeastSlice, *rate * kSlice.count()));
  const std::size_t bytes = std::min({wanted, slice, kMostAtOnce});
  const Clock::time_point when = std::max(free_, now - kBurst);
  free_ = when + std::chrono::duration_cast<Clock::duration>(Seconds(static_cast<double>(bytes) / *rate));
  return {bytes, std::max(when, now)};
}

}  // namespace atl
