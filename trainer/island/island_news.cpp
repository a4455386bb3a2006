#include "trainer/island/island_news.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace atl {
namespace {

template <class Peer>
Peer event_of(const RosterEntry& entry) {
  return {entry.id.value, entry.display_name, to_string(entry.address), entry.software, entry.region};
}

}  // namespace

void IslandNews::learn_roster(const HubRoster& roster) {
  if (!publish_) return;
  std::map<IslandId, RosterEntry> now;
  for (const RosterEntry& entry : roster.islands) {
    if (entry.id == self_) continue;
    const auto before = peers_.find(entry.id);
    if (before == peers_.end() || before->second.address != entry.address) publish_(event_of<event::PeerUp>(entry));
    now.emplace(entry.id, entry);
  }
  for (const auto& [id, entry] : peers_) {
    if (!now.contains(id)) publish_(event_of<event::PeerDown>(entry));
  }
  peers_ = std::move(now);
}

bool IslandNews::hub_lost(const std::string& why, std::optional<Seconds> tries_for) {
  if (std::exchange(hub_is_lost_, true)) return false;
  if (!publish_) return true;
  event::HubLink link{.up = false, .text = why};
  if (tries_for) link.tries_for_seconds = std::max(0.0, tries_for->count());
  publish_(link);
  return true;
}

void IslandNews::hub_back() {
  if (std::exchange(hub_is_lost_, false) && publish_) publish_(event::HubLink{.up = true});
}

void IslandNews::attempt_begins(const HubAttempt& attempt, const Roster& roster) {
  fragment_ = attempt.fragment;
  if (!publish_) return;
  event::AttemptBegin begin{.round = attempt.round.value,
                            .fragment = attempt.fragment,
                            .attempt = attempt.attempt.value,
                            .directly = attempt.schedule == Schedule::kDirect};
  for (std::size_t rank = 0; rank < attempt.order.size(); ++rank) {
    const AttemptMember& member = attempt.order[rank];
    const auto entry = roster.entries({member.id});
    const double rate = attempt.edge_bytes_per_second.empty() ? 0 : attempt.edge_bytes_per_second[rank];
    begin.ring.push_back({.island = member.id.value,
                          .name = entry.empty() ? std::string() : entry.front().display_name,
                          .tokens = member.tokens,
                          .edge_bytes_per_second = rate > 0 ? std::optional(rate) : std::nullopt});
  }
  publish_(begin);
}

void IslandNews::progress(const AllReduceSpec& spec, const AllReduceProgress& progress) {
  if (!publish_) return;
  publish_(event::SyncProgress{
      .round = spec.round.value,
      .fragment = fragment_,
      .attempt = spec.attempt.value,
      .part = progress.phase == RingPhase::kAllGather ? SyncPart::kAllGather : SyncPart::kReduceScatter,
      .bytes_done = progress.bytes_done,
      .bytes_total = progress.bytes_total,
      .step = progress.step,
      .steps = progress.steps,
      .sent_bytes_per_second = progress.sent_bytes_per_second,
      .received_bytes_per_second = progress.received_bytes_per_second});
}

void IslandNews::inner_phase_done(Clock::time_point now) { waits_since_ = now; }

void IslandNews::attempt_done(const AllReduceSpec& spec, const std::variant<AllReduceReport, AllReduceFailure>& outcome,
                              Clock::time_point begin, Clock::time_point end) {
  if (!publish_) return;
  round_ = spec.round;
  attempt_ = spec.attempt;
  if (waits_since_) tell_part(SyncPart::kWait, begin - *waits_since_, 0);
  waits_since_ = end;
  if (const auto* report = std::get_if<AllReduceReport>(&outcome)) {
    tell_parts(*report);
    tell_links(*report);
    return;
  }
  tell_part(SyncPart::kFailed, end - begin, 0);
  const auto& peer = std::get<AllReduceFailure>(outcome).peer;
  if (peer) publish_(event::PeerLink{.island = peer->value, .failed = true});
}

void IslandNews::tell_links(const AllReduceReport& report) {
  if (!report.next.value.empty() && report.bytes_per_second > 0) {
    publish_(event::PeerLink{
        .island = report.next.value, .rtt_seconds = report.rtt_seconds, .bytes_per_second = report.bytes_per_second});
  }
  if (!report.previous.value.empty() && report.bytes_per_second_received > 0) {
    publish_(
        event::PeerLink{.island = report.previous.value, .down_bytes_per_second = report.bytes_per_second_received});
  }
}

// What is sent in either half of the ring is as much, to a frame.
void IslandNews::tell_parts(const AllReduceReport& report) {
  const std::uint64_t half = report.bytes_sent / 2;
  tell_part(SyncPart::kConnect, report.phases.connect, 0);
  tell_part(SyncPart::kQuantise, report.phases.quantise, 0);
  tell_part(SyncPart::kReduceScatter, report.phases.reduce_scatter, half);
  tell_part(SyncPart::kAllGather, report.phases.all_gather, report.bytes_sent - half);
}

void IslandNews::committed(OuterStep round, Clock::time_point now) {
  const auto waited_since = std::exchange(waits_since_, std::nullopt);
  applies_since_.reset();
  if (!waited_since || round != round_) return;  // of an average that this island has no part in
  if (publish_) tell_part(SyncPart::kCommit, now - *waited_since, 0);
  applies_since_ = now;
}

void IslandNews::said(const IslandMessage& message, const RunConfig& run) const {
  if (!publish_) return;
  if (const auto* validated = std::get_if<IslandValidation>(&message)) {
    return publish_(event::Validated{validated->outer_step.value, validated->loss_nats});
  }
  const auto* evaluated = std::get_if<IslandEvaluation>(&message);
  if (evaluated == nullptr || evaluated->task >= run.evaluation.tasks.size()) return;
  const EvaluationTask& task = run.evaluation.tasks[evaluated->task];
  event::Evaluated told{.outer_step = evaluated->outer_step.value, .task = task.name};
  const auto metrics = metrics_of(task.kind);
  for (std::size_t i = 0; i < std::min(metrics.size(), evaluated->figures.size()); ++i) {
    const bool is_main = metrics[i].name == main_metric(task.kind);
    told.figures.insert(is_main ? told.figures.begin() : told.figures.end(),
                        {std::string(metrics[i].name), evaluated->figures[i]});
  }
  publish_(told);
}

void IslandNews::round_begins(const IslandState& state) {
  at_begin_ = state;
  round_is_open_ = true;
}

void IslandNews::round_done(Clock::time_point now, const IslandState& state) {
  if (publish_ && applies_since_) tell_part(SyncPart::kApply, now - *applies_since_, 0);
  applies_since_.reset();
  const bool was_open = std::exchange(round_is_open_, false);
  if (!publish_ || state.outer_step == 0) return;
  event::RoundDone done{.round = state.outer_step - 1, .fragment = fragment_, .islands = state.islands_live};
  done.accepted = state.accepted_round == done.round;
  done.sync_seconds = state.last_sync_seconds;
  if (std::isfinite(state.loss_nats) && state.loss_nats > 0) done.loss_nats = state.loss_nats;
  done.state_hash = state.state_hash;
  if (was_open && at_begin_.round == done.round) {
    done.tokens = state.tokens - at_begin_.tokens;
    done.bytes_sent = state.bytes_sent - at_begin_.bytes_sent;
    done.inner_seconds = state.inner_seconds - at_begin_.inner_seconds;
  }
  publish_(done);
}

ControlEvent event_of(StateNews news, const IslandState& state, const RunConfig& run) {
  const NodeState told{.island = state};
  switch (news) {
    case StateNews::kChanged: break;
    case StateNews::kRoundBegin: return event::RoundBegin{told, run.fragment_of(OuterStep{state.round})};
    case StateNews::kStep: return event::Step{.state = told};
    case StateNews::kSyncing: return event::Syncing{.state = told};
    case StateNews::kSyncDone:
      return event::SyncDone{told, run.fragment_of(OuterStep{std::max(state.outer_step, 1u) - 1})};
    case StateNews::kCheckpointSaved: return event::CheckpointSaved{.state = told};
    case StateNews::kError: return event::TrainerError{.state = told};
  }
  return event::StateChanged{.state = told};
}

void IslandNews::tell_part(SyncPart part, Seconds duration, std::uint64_t bytes) {
  publish_(event::SyncPhase{.round = round_.value,
                            .fragment = fragment_,
                            .attempt = attempt_.value,
                            .part = part,
                            .seconds = std::max(0.0, duration.count()),
                            .bytes = bytes});
}

}  // namespace atl
