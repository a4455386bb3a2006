#include "app/core/island_report.h"

namespace atl {

std::optional<Seconds> age_of(const IslandReport& report, Clock::time_point now) {
  if (!report.state) return std::nullopt;
  return std::max(Seconds(0), Seconds(now - report.state_time));
}

bool is_live(const IslandReport& report, Clock::time_point now) {
  // One slow answer is no news: the state stays live until it is old.
  const bool answers = report.link == IslandLink::kConnected || report.link == IslandLink::kSilent;
  const auto age = age_of(report, now);
  return answers && age && *age < kStaleAfter;
}

}  // namespace atl
