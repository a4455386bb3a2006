// Hours of the day in which to train, as an owner writes them: "22:00-06:00, 12:00-13:30". Plain values; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/base/result.h"

namespace atl {

// A span of the day in minutes, local time; an end before the beginning lies in the next morning.
struct TrainingHours {
  int begin_minute = 0;
  int end_minute = 0;  // up to 24:00
  bool operator==(const TrainingHours&) const = default;
};

inline constexpr std::size_t kMostSpans = 32;
// None: always. At most kMostSpans.
Result<std::vector<TrainingHours>> parse_training_hours(std::string_view text);
std::string to_string(const std::vector<TrainingHours>& hours);

}  // namespace atl
