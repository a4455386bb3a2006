#include "app/agent/owners_caps.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace atl {
namespace {

std::tm local(std::time_t time) {
  std::tm parts{};
  ::localtime_r(&time, &parts);
  return parts;
}

int minute_of(const std::tm& time) { return time.tm_hour * 60 + time.tm_min; }

}  // namespace

void OwnersCaps::set(const Result<CapRules>& rules) {
  trouble_.clear();
  if (rules.ok()) {
    rules_ = *rules;
    return;
  }
  trouble_ = fmt::format("limits on transfers stay as they were: {}", rules.error().message);
  spdlog::warn("caps error=\"{}\"", rules.error().message);
}

TransferCaps OwnersCaps::at(std::time_t time) const {
  const int minute = minute_of(local(time));
  return {rules_.upload.at(minute), rules_.download.at(minute)};
}

// The minute is found on the clock of the wall, so that a day of 23 or 25 hours ends its spans when people expect it.
TransferCapView OwnersCaps::view(const CapRule& rule, std::time_t time) {
  std::tm parts = local(time);
  const int minute = minute_of(parts);
  TransferCapView now{rule.at(minute), {}};
  if (const auto after = rule.changes_after(minute)) {
    parts.tm_min += *after;
    parts.tm_sec = 0;
    parts.tm_isdst = -1;
    now.until = static_cast<std::int64_t>(std::mktime(&parts));
  }
  return now;
}

}  // namespace atl
