#include "app/config/cap_hours.h"

#include <fmt/format.h>

#include <array>

#include "app/config/quantity.h"

namespace atl {
namespace {

constexpr int kDay = 24 * 60;  // minutes

Error wrong(std::string message) { return Error{ErrorCode::kInvalidArgument, std::move(message)}; }

bool covers(const TrainingHours& hours, int minute) {
  const auto [begin, end] = hours;
  return begin < end ? minute >= begin && minute < end : minute >= begin || minute < end;
}

std::string text_of(const CapHours& one) { return fmt::format("{} {}", to_string({one.hours}), one.cap); }

Result<CapHours> parse_one(std::string_view written) {
  const std::size_t blank = written.find_first_of(" \t");
  const auto hours = parse_training_hours(written.substr(0, blank));
  if (!hours.ok() || hours->size() != 1) {
    return wrong(fmt::format("'{}' does not begin with hours of the day; write 08:00-18:00 20 Mbit/s", written));
  }
  const auto cap = normalised_cap(blank == std::string_view::npos ? "" : trimmed(written.substr(blank)));
  if (!cap) return wrong(fmt::format("'{}': behind the hours must be {}", written, kCapWanted));
  return CapHours{hours->front(), *cap};
}

}  // namespace

Result<std::vector<CapHours>> parse_cap_hours(std::string_view text) {
  std::vector<CapHours> all;
  if (trimmed(text) == "none") return all;     // as documents and lists say it
  std::array<std::size_t, kDay> covered_by{};  // 1: by the first
  while (!trimmed(text).empty()) {
    const std::size_t comma = text.find(',');
    ATOLL_ASSIGN_OR_RETURN(CapHours one, parse_one(trimmed(text.substr(0, comma))));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    if (all.size() == kMostSpans) return wrong(fmt::format("more than {} spans of a day", kMostSpans));
    all.push_back(std::move(one));
    for (int minute = 0; minute < kDay; ++minute) {
      if (!covers(all.back().hours, minute)) continue;
      std::size_t& by = covered_by[static_cast<std::size_t>(minute)];
      if (by != 0) {
        return wrong(fmt::format("at {:02}:{:02} both '{}' and '{}' hold; leave each minute to one of them",
                                 minute / 60, minute % 60, text_of(all[by - 1]), text_of(all.back())));
      }
      by = all.size();
    }
  }
  return all;
}

std::string to_string(const std::vector<CapHours>& hours) {
  std::string text;
  for (const CapHours& one : hours) text += (text.empty() ? "" : ", ") + text_of(one);
  return text;
}

std::optional<double> CapRule::at(int minute_of_day) const {
  for (const CapHours& one : by_hours) {
    if (covers(one.hours, minute_of_day)) return cap_bytes_per_second(one.cap);
  }
  return otherwise;
}

std::optional<int> CapRule::changes_after(int minute_of_day) const {
  for (int minutes = 1; minutes < kDay; ++minutes) {
    if (at((minute_of_day + minutes) % kDay) != at(minute_of_day)) return minutes;
  }
  return std::nullopt;
}

}  // namespace atl
