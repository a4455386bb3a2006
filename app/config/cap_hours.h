// Other caps on transfers at given hours of the day, as an owner writes them: "08:00-18:00 20 Mbit/s, 23:00-06:00
// none". Plain values; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/config/training_hours.h"
#include "net/base/result.h"

namespace atl {

struct CapHours {
  TrainingHours hours;
  std::string cap;  // normalised (app/config/quantity.h)
  bool operator==(const CapHours&) const = default;
};

// None: the same at all hours. At most 32 spans, none of which covers a minute of another.
Result<std::vector<CapHours>> parse_cap_hours(std::string_view text);
std::string to_string(const std::vector<CapHours>& hours);

// What an owner lets pass in one direction.
struct CapRule {
  std::optional<double> otherwise = {};  // bytes/s at all other hours; empty: no limit
  std::vector<CapHours> by_hours = {};
  bool operator==(const CapRule&) const = default;

  // At that minute of the day.
  std::optional<double> at(int minute_of_day) const;
  // After how many minutes, 1 to 1440, it is another; empty: it is the same all day.
  std::optional<int> changes_after(int minute_of_day) const;
};

}  // namespace atl
