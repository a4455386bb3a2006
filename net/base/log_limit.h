// Keeps a log short of lines that others can cause at will: of those with the same key one is written in a period, with
// how many were held back before it. Bounded: keys beyond `most_keys` share one. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "net/base/deadline.h"
#include "net/base/mutex.h"

namespace atl {

class LogLimit {
 public:
  explicit LogLimit(Clock::duration period = std::chrono::minutes(5), std::size_t most_keys = 256)
      : period_(period), most_keys_(most_keys) {}

  // Empty: do not write this line. Else how many of its key were not written since the last one that was.
  std::optional<std::uint64_t> pass(const std::string& key, Clock::time_point now = Clock::now()) {
    MutexLock lock(mutex_);
    if (!lines_.contains(key) && lines_.size() >= most_keys_) {
      std::erase_if(lines_, [&](const auto& line) { return now - line.second.written >= period_; });
    }
    const bool room = lines_.contains(key) || lines_.size() < most_keys_;
    const auto [found, is_new] = lines_.try_emplace(room ? key : std::string(), Line{now, 0});
    Line& line = found->second;
    if (is_new) return 0;
    if (now - line.written < period_) {
      ++line.held_back;
      return std::nullopt;
    }
    line.written = now;
    return std::exchange(line.held_back, 0);
  }

 private:
  struct Line {
    Clock::time_point written;
    std::uint64_t held_back = 0;
  };
  const Clock::duration period_;
  const std::size_t most_keys_;
  Mutex mutex_;
  std::map<std::string, Line> lines_ ATOLL_GUARDED_BY(mutex_);  // at most most_keys_ and the shared one
};

}  // namespace atl
