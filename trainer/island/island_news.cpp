#include "trainer/island/island_news.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace atl {
namespace {

nlohmann::json to_json(const RosterEntry& entry) {
  return {{"island", entry.id.value}, {"name", entry.display_name}, {"address", to_string(entry.address)}};
}

}  // namespace

void IslandNews::learn_roster(const HubRoster& roster) {
  if (!publish_) return;
  std::map<IslandId, RosterEntry> now;
  for (const RosterEntry& entry : roster.islands) {
    if (entry.id == self_) continue;
    const auto before = peers_.find(entry.id);
    if (before == peers_.end() || before->second.address != entry.address) publish_("peer.up", to_json(entry));
    now.emplace(entry.id, entry);
  }
  for (const auto& [id, entry] : peers_) {
    if (!now.contains(id)) publish_("peer.down", to_json(entry));
  }
  peers_ = std::move(now);
}

void IslandNews::inner_phase_done(Clock::time_point now) { waits_since_ = now; }

void IslandNews::attempt_done(const AllReduceSpec& spec, const AllReduceReport* report, Clock::time_point begin,
                              Clock::time_point end) {
  if (!publish_) return;
  round_ = spec.round;
  attempt_ = spec.attempt;
  if (waits_since_) tell_phase("wait", begin - *waits_since_, 0);
  tell_phase(report != nullptr ? "all_reduce" : "failed", end - begin, report != nullptr ? report->bytes_sent : 0);
  waits_since_ = end;
  if (report == nullptr || report->next.value.empty() || report->bytes_per_second <= 0) return;
  publish_("peer.link", {{"island", report->next.value},
                         {"rtt_seconds", report->rtt_seconds},
                         {"bytes_per_second", report->bytes_per_second}});
}

void IslandNews::round_done(Clock::time_point now) {
  if (publish_ && waits_since_) tell_phase("commit", now - *waits_since_, 0);
  waits_since_.reset();
}

void IslandNews::tell_phase(const char* phase, Seconds duration, std::uint64_t bytes) {
  publish_("sync.phase", {{"round", round_.value},
                          {"attempt", attempt_.value},
                          {"phase", phase},
                          {"seconds", std::max(0.0, duration.count())},
                          {"bytes", bytes}});
}

}  // namespace atl
