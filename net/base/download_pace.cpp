#include "net/base/download_pace.h"

#include <poll.h>

#include <algorithm>

namespace atl {
namespace {

constexpr std::chrono::milliseconds kLook{100};  // at the rate, which may have changed

}  // namespace

DownloadPace::Attempt::Attempt(DownloadPace& pace) : pace_(pace) {
  MutexLock lock(pace_.mutex_);
  pace_.settle_all(Clock::now());
  ++pace_.attempts_;
}

DownloadPace::Attempt::~Attempt() {
  MutexLock lock(pace_.mutex_);
  pace_.settle_all(Clock::now());
  --pace_.attempts_;
}

std::optional<double> DownloadPace::rate_of(Use use) const {
  if (!allowed_) return std::nullopt;
  if (use == Use::kRing) return *allowed_ * (1 - kPartOfFetches);
  return attempts_ > 0 ? *allowed_ * kPartOfFetches : *allowed_;
}

DownloadPace::Bucket& DownloadPace::settled(Use use, double rate, Clock::time_point now) {
  Bucket& bucket = buckets_[static_cast<std::size_t>(use)];
  if (now > bucket.as_of) {
    const double passed = Seconds(now - bucket.as_of).count();
    bucket.bytes = std::min(bucket.bytes + rate * passed, rate * kBurst.count());
    bucket.as_of = now;
  }
  return bucket;
}

void DownloadPace::settle_all(Clock::time_point now) {
  for (const Use use : {Use::kRing, Use::kFetch}) {
    if (const auto rate = rate_of(use)) settled(use, *rate, now);
  }
}

void DownloadPace::allow(std::optional<double> bytes_per_second) {
  MutexLock lock(mutex_);
  const auto now = Clock::now();
  settle_all(now);
  if (!allowed_) buckets_.fill({0, now});  // what was read without a limit owes nothing
  allowed_ = bytes_per_second;
}

std::optional<double> DownloadPace::allowed() const {
  MutexLock lock(mutex_);
  return allowed_;
}

Clock::time_point DownloadPace::may_read_at(Use use, Clock::time_point now) {
  MutexLock lock(mutex_);
  const std::optional<double> rate = rate_of(use);
  if (!rate) return now;
  const Bucket& bucket = settled(use, *rate, now);
  if (bucket.bytes >= 0) return now;
  return now + std::chrono::ceil<std::chrono::microseconds>(Seconds(-bucket.bytes / *rate));
}

std::size_t DownloadPace::at_once(Use use) const {
  MutexLock lock(mutex_);
  const std::optional<double> rate = rate_of(use);
  if (!rate) return kMostAtOnce;
  return std::clamp(static_cast<std::size_t>(*rate * kBurst.count()), kLeastAtOnce, kMostAtOnce);
}

void DownloadPace::has_read(Use use, std::size_t bytes, Clock::time_point now) {
  MutexLock lock(mutex_);
  if (const std::optional<double> rate = rate_of(use)) {
    settled(use, *rate, now).bytes -= static_cast<double>(bytes);
  }
}

Clock::duration DownloadPace::wait(Use use, const AbortSignal& abort) {
  const auto began = Clock::now();
  for (auto now = began;; now = Clock::now()) {
    const Clock::time_point when = may_read_at(use, now);
    if (when <= now || abort.raised()) return now - began;
    pollfd wake{abort.fd(), POLLIN, 0};
    (void)::poll(&wake, 1, Deadline::at(std::min(when, now + kLook)).poll_milliseconds());
  }
}

}  // namespace atl
