// A point in time by which something must have happened. Every wait takes one.
#pragma once

#include <algorithm>
#include <chrono>

namespace atl {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

class Deadline {
 public:
  static Deadline after(std::chrono::nanoseconds duration) { return Deadline(Clock::now() + duration); }
  static Deadline at(Clock::time_point when) { return Deadline(when); }

  Clock::time_point when() const { return when_; }
  Deadline but_not_after(Deadline other) const { return Deadline(std::min(when_, other.when_)); }

  bool expired() const { return Clock::now() >= when_; }
  // For poll(2): 0 when expired, rounded up, at most `cap`.
  int poll_milliseconds(int cap = 1000) const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(when_ - Clock::now()).count();
    return static_cast<int>(std::clamp<long long>(left, 0, cap));
  }

 private:
  explicit Deadline(Clock::time_point when) : when_(when) {}
  Clock::time_point when_;
};

}  // namespace atl
