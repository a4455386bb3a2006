#include "app/config/training_hours.h"

#include <fmt/format.h>

#include <optional>

#include "app/config/quantity.h"

namespace atl {
namespace {

constexpr int kMidnight = 24 * 60;
constexpr std::string_view kAlways = "always";  // as documents and lists say it

// "22:00" in minutes; 24:00 is allowed, as an end.
std::optional<int> parse_minute(std::string_view text) {
  if (text.size() != 5 || text[2] != ':') return std::nullopt;
  const auto is_digit = [&](std::size_t i) { return text[i] >= '0' && text[i] <= '9'; };
  if (!is_digit(0) || !is_digit(1) || !is_digit(3) || !is_digit(4)) return std::nullopt;
  const int hour = (text[0] - '0') * 10 + text[1] - '0', minute = (text[3] - '0') * 10 + text[4] - '0';
  const int minutes = hour * 60 + minute;
  return minute < 60 && minutes <= kMidnight ? std::optional(minutes) : std::nullopt;
}

std::optional<TrainingHours> parse_span(std::string_view span) {
  const auto dash = span.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto begin = parse_minute(trimmed(span.substr(0, dash))), end = parse_minute(trimmed(span.substr(dash + 1)));
  if (!begin || !end || *begin == kMidnight || *begin == *end) return std::nullopt;
  return TrainingHours{*begin, *end};
}

}  // namespace

Result<std::vector<TrainingHours>> parse_training_hours(std::string_view text) {
  std::vector<TrainingHours> hours;
  if (trimmed(text) == kAlways) return hours;
  while (!trimmed(text).empty()) {
    const auto comma = text.find(',');
    const std::string_view written = trimmed(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    const auto span = parse_span(written);
    if (!span || hours.size() >= kMostSpans) {
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("'{}' are no hours of the day; write them as 22:00-06:00, several with commas, or always",
                      written)};
    }
    hours.push_back(*span);
  }
  return hours;
}

std::string to_string(const std::vector<TrainingHours>& hours) {
  std::string text;
  for (const auto& [begin, end] : hours) {
    text +=
        fmt::format("{}{:02}:{:02}-{:02}:{:02}", text.empty() ? "" : ", ", begin / 60, begin % 60, end / 60, end % 60);
  }
  return text;
}

}  // namespace atl
