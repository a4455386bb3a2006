// What is believed of what a GPU probe says of a machine. Pure; any thread.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>

namespace atl {

inline constexpr std::size_t kMaxGpus = 64;               // of one machine
inline constexpr double kXidAgeThatCounts = 24.0 * 3600;  // seconds

inline bool is_figure(const std::optional<double>& value) { return !value || (std::isfinite(*value) && *value >= 0); }

}  // namespace atl
