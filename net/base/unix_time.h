// The wall clock as numbers, for what is written down or sent: seconds since 1970 (UTC). Any thread. What is to be
// waited for goes by Clock (deadline.h), which nobody sets.
#pragma once

#include <chrono>
#include <cstdint>

namespace atl {

inline double unix_time_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

inline std::int64_t unix_seconds_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

inline std::int64_t unix_milliseconds_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

}  // namespace atl
