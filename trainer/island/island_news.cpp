#include "trainer/island/island_news.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace atl {
namespace {

nlohmann::json to_json(const RosterEntry& entry) {
  return {{"island", entry.id.value},
          {"name", entry.display_name},
          {"address", to_string(entry.address)},
          {"version", entry.software},
          {"region", entry.region}};
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

bool IslandNews::hub_lost(const std::string& why, std::optional<Seconds> tries_for) {
  if (std::exchange(hub_is_lost_, true)) return false;
  if (!publish_) return true;
  nlohmann::json data = {{"up", false}, {"text", why}};
  if (tries_for) data["tries_for_seconds"] = std::max(0.0, tries_for->count());
  publish_("hub.link", data);
  return true;
}

void IslandNews::hub_back() {
  if (std::exchange(hub_is_lost_, false) && publish_) publish_("hub.link", {{"up", true}});
}

void IslandNews::attempt_begins(const HubAttempt& attempt, const Roster& roster) {
  if (!publish_) return;
  nlohmann::json ring = nlohmann::json::array();
  for (std::size_t rank = 0; rank < attempt.order.size(); ++rank) {
    const AttemptMember& member = attempt.order[rank];
    const auto entry = roster.entries({member.id});
    const double rate = attempt.edge_bytes_per_second.empty() ? 0 : attempt.edge_bytes_per_second[rank];
    ring.push_back({{"island", member.id.value},
                    {"name", entry.empty() ? std::string() : entry.front().display_name},
                    {"tokens", member.tokens},
                    {"edge_bytes_per_second", rate > 0 ? nlohmann::json(rate) : nlohmann::json()}});
  }
  publish_("sync.phase", {{"phase", "begin"},
                          {"round", attempt.round.value},
                          {"attempt", attempt.attempt.value},
                          {"ring", std::move(ring)}});
}

void IslandNews::progress(const AllReduceSpec& spec, const AllReduceProgress& progress) {
  if (!publish_) return;
  publish_("sync.progress", {{"round", spec.round.value},
                             {"attempt", spec.attempt.value},
                             {"phase", progress.phase == RingPhase::kAllGather ? "all_gather" : "reduce_scatter"},
                             {"bytes_done", progress.bytes_done},
                             {"bytes_total", progress.bytes_total},
                             {"step", progress.step},
                             {"steps", progress.steps},
                             {"sent_bytes_per_second", progress.sent_bytes_per_second},
                             {"received_bytes_per_second", progress.received_bytes_per_second}});
}

void IslandNews::inner_phase_done(Clock::time_point now) { waits_since_ = now; }

void IslandNews::attempt_done(const AllReduceSpec& spec, const std::variant<AllReduceReport, AllReduceFailure>& outcome,
                              Clock::time_point begin, Clock::time_point end) {
  if (!publish_) return;
  round_ = spec.round;
  attempt_ = spec.attempt;
  if (waits_since_) tell_phase("wait", begin - *waits_since_, 0);
  waits_since_ = end;
  if (const auto* report = std::get_if<AllReduceReport>(&outcome)) {
    tell_parts(*report);
    tell_links(*report);
    return;
  }
  tell_phase("failed", end - begin, 0);
  const auto& peer = std::get<AllReduceFailure>(outcome).peer;
  if (peer) publish_("peer.link", {{"island", peer->value}, {"failed", true}});
}

void IslandNews::tell_links(const AllReduceReport& report) {
  if (!report.next.value.empty() && report.bytes_per_second > 0) {
    publish_("peer.link", {{"island", report.next.value},
                           {"rtt_seconds", report.rtt_seconds},
                           {"bytes_per_second", report.bytes_per_second}});
  }
  if (!report.previous.value.empty() && report.bytes_per_second_received > 0) {
    publish_("peer.link",
             {{"island", report.previous.value}, {"down_bytes_per_second", report.bytes_per_second_received}});
  }
}

// What is sent in either half of the ring is as much, to a frame.
void IslandNews::tell_parts(const AllReduceReport& report) {
  const std::uint64_t half = report.bytes_sent / 2;
  tell_phase("connect", report.phases.connect, 0);
  tell_phase("quantise", report.phases.quantise, 0);
  tell_phase("reduce_scatter", report.phases.reduce_scatter, half);
  tell_phase("all_gather", report.phases.all_gather, report.bytes_sent - half);
}

void IslandNews::committed(OuterStep round, Clock::time_point now) {
  const auto waited_since = std::exchange(waits_since_, std::nullopt);
  applies_since_.reset();
  if (!waited_since || round != round_) return;  // of an average that this island has no part in
  if (publish_) tell_phase("commit", now - *waited_since, 0);
  applies_since_ = now;
}

void IslandNews::round_done(Clock::time_point now) {
  if (publish_ && applies_since_) tell_phase("apply", now - *applies_since_, 0);
  applies_since_.reset();
}

void IslandNews::tell_phase(const char* phase, Seconds duration, std::uint64_t bytes) {
  publish_("sync.phase", {{"round", round_.value},
                          {"attempt", attempt_.value},
                          {"phase", phase},
                          {"seconds", std::max(0.0, duration.count())},
                          {"bytes", bytes}});
}

}  // namespace atl
