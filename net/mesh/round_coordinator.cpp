#include "net/mesh/round_coordinator.h"

#include <fmt/format.h>

#include <cmath>

namespace atl {
namespace {

constexpr std::chrono::hours kLongestPause{7 * 24};  // then its place is free

}  // namespace

RoundCoordinator::RoundCoordinator(RunConfig run, CoordinatorMemory memory, CommitSigner sign)
    : run_(std::move(run)),
      sign_(std::move(sign)),
      committed_(memory.committed),
      last_commit_(std::move(memory.last_commit)),
      leases_(memory.lease_cursor, memory.returned_leases),
      round_open_(!memory.open_leases.empty()),
      last_attempt_(memory.last_attempt) {
  agreement_.begin({}, std::move(memory.agreed_hash));
  hash_persisted_ = agreement_.agreed().has_value();
  for (const IslandLease& lease : memory.open_leases) expected_back_[lease.island] = lease.range;
  if (!last_commit_) return;
  for (const AttemptMember& member : last_commit_->members) {
    last_holders_.insert(member.id);
    if (!round_open_) expected_back_[member.id] = {};
  }
}

RoundCoordinator::Actions RoundCoordinator::next(const CoordinatorEvent& event, Clock::time_point now) {
  now_ = now;
  if (!expected_back_until_) expected_back_until_ = now + run_.dead_after;
  if (round_began_ == Clock::time_point{}) round_began_ = now;
  std::visit([this](const auto& e) { on(e); }, event);
  if (!finished_) {
    bury_the_silent();
    settle();
  }
  return std::exchange(actions_, {});
}

RoundCoordinator::Phase RoundCoordinator::phase() const {
  if (finished_) return Phase::kFinished;
  if (attempt_ || kept_) return Phase::kSyncing;
  return round_open_ ? Phase::kTraining : Phase::kWaiting;
}

void RoundCoordinator::send(const IslandId& island, HubMessage message) {
  actions_.push_back(SendTo{island, std::move(message)});
}

void RoundCoordinator::publish(CoordinatorNews news) { actions_.push_back(Publish{std::move(news)}); }

MeshIsland* RoundCoordinator::find(const IslandId& id) {
  const auto found = islands_.find(id);
  return found == islands_.end() ? nullptr : &found->second;
}

// ---- coming

Status RoundCoordinator::may_enter(const IslandConnected& event) const {
  if (event.hello.version != kMeshVersion) {
    return Error{ErrorCode::kVersionUnsupported,
                 fmt::format("this island speaks version {} of the mesh ({}), the hub version {}: update the older one",
                             event.hello.version, event.hello.software, kMeshVersion)};
  }
  if (event.hello.outer_step && *event.hello.outer_step > committed_) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("this island holds outer step {}, but the hub has committed only {}: the hub was restored "
                             "from an old backup; restore a newer one",
                             event.hello.outer_step->value, committed_.value)};
  }
  if (!islands_.contains(event.entry.id) && islands_.size() >= run_.max_islands) {
    return Error{ErrorCode::kPermissionDenied,
                 fmt::format("the run is full: it takes {} islands; try again when one has left", run_.max_islands)};
  }
  return ok_status();
}

void RoundCoordinator::on(const IslandConnected& event) {
  const IslandId& id = event.entry.id;
  // A new connection replaces the old one.
  if (MeshIsland* present = find(id); present != nullptr) disconnect(*present);
  if (const Status enter = may_enter(event); !enter.ok()) {
    send(id, HubGoodbye{enter.error().code, enter.error().message, false});
    actions_.push_back(CloseConnection{id});
    return;
  }
  send(id, HubWelcome{kMeshVersion, run_, committed_});
  if (finished_) {
    if (last_commit_ && event.hello.outer_step == last_commit_->round && last_holders_.contains(id)) {
      send(id, *last_commit_);
    }
    send(id, HubGoodbye{ErrorCode::kAborted, "the run is finished", true});
    actions_.push_back(CloseConnection{id});
    return;
  }
  const bool is_new = !islands_.contains(id);
  MeshIsland& island = islands_[id];
  const bool moved = island.entry.address != event.entry.address;
  island.entry = event.entry;
  island.connected = true;
  island.paused = false;
  island.last_heard = now_;
  island.ready.reset();
  send_roster();
  if (is_new || moved || !links_.dialable(id)) dial(island);
  if (is_new) publish(IslandJoined{id, event.entry.display_name});
  place_returning(island, event.hello);
}

// An island that comes (back) is told again where its round stands: what was sent before may never have arrived.
void RoundCoordinator::place_returning(MeshIsland& island, const IslandHello& hello) {
  const auto& agreed = agreement_.agreed();
  const bool has_committed_step = hello.outer_step == committed_;
  if (island.standing == MeshIsland::Standing::kTraining && has_committed_step &&
      (!agreed || hello.state_hash == *agreed)) {
    agreement_.report(island.id(), hello.state_hash);
    if (island.part != MeshIsland::Part::kNone) send(island.id(), island.begun);
    return;
  }
  if (last_commit_ && hello.outer_step == last_commit_->round && last_holders_.contains(island.id())) {
    island.standing = MeshIsland::Standing::kTraining;
    agreement_.expect(island.id());
    send(island.id(), *last_commit_);
    if (island.part != MeshIsland::Part::kNone) send(island.id(), island.begun);
    return;
  }
  start_recovering(island);
  if (has_committed_step) return said(island, IslandRecovered{committed_, hello.state_hash});
  if (!last_commit_) {
    send(island.id(), HubInitialise{});
    island.told_to_recover = committed_;
  }
}

void RoundCoordinator::send_roster() {
  HubRoster roster;
  for (const auto& [id, island] : islands_) {
    if (!island.paused) roster.islands.push_back(island.entry);
  }
  for (const auto& [id, island] : islands_) {
    if (island.connected) send(id, roster);
  }
}

// Until the answer comes the island counts as before.
void RoundCoordinator::dial(MeshIsland& island) {
  island.dialled_at = now_;
  actions_.push_back(DialIsland{island.id(), island.entry.address});
}

// ---- going

void RoundCoordinator::on(const IslandDisconnected& event) {
  if (MeshIsland* island = find(event.island)) disconnect(*island);
}

void RoundCoordinator::on(const IslandDialled& event) {
  const MeshIsland* island = find(event.island);
  if (island != nullptr && island->entry.address == event.address) links_.set_dialable(event.island, event.answered);
}

// It may come back within dead_after and keep its place; an open attempt does not wait for it.
void RoundCoordinator::disconnect(MeshIsland& island) {
  if (!island.connected) return;
  island.connected = false;
  island.disconnected_at = now_;
  island.awaited_until = attempt_ || kept_ ? now_ : now_ + run_.heartbeat;
  island.ready.reset();
  leave_attempt(island.id());
}

// It keeps its place and its lease, and the round goes on as if it had none: what it did is averaged if it is back and
// ready in time, and leased again if not.
void RoundCoordinator::pause(MeshIsland& island) {
  disconnect(island);
  island.paused = true;
  island.awaited_until = now_;
  if (!agreement_.reported(island.id())) agreement_.drop(island.id());  // nobody waits for its report
  publish(IslandPaused{island.id(), island.entry.display_name});
  send_roster();
}

void RoundCoordinator::remove(const IslandId& id, bool left, const std::string& reason) {
  MeshIsland* island = find(id);
  if (island == nullptr) return;
  disconnect(*island);
  drop_part(*island);
  const bool was_source = agreement_.agreed() && agreement_.reported(id) == agreement_.agreed();
  agreement_.drop(id);
  links_.forget(id);
  publish(IslandGone{id, island->entry.display_name, left, reason});
  islands_.erase(id);
  send_roster();
  if (!was_source || !last_commit_) return;
  for (auto& [other_id, other] : islands_) {  // whoever recovers from it needs other sources
    if (other.standing == MeshIsland::Standing::kRecovering) other.told_to_recover.reset();
  }
}

void RoundCoordinator::send_away(const IslandId& id, ErrorCode code, const std::string& message) {
  send(id, HubGoodbye{code, message, false});
  actions_.push_back(CloseConnection{id});
  remove(id, false, message);
}

void RoundCoordinator::bury_the_silent() {
  std::vector<IslandId> silent, lost;
  for (const auto& [id, island] : islands_) {
    if (island.connected && now_ - island.last_heard > run_.dead_after) silent.push_back(id);
    const auto away = now_ - island.disconnected_at;
    if (!island.connected && away > (island.paused ? Clock::duration(kLongestPause) : run_.dead_after)) {
      lost.push_back(id);
    }
  }
  for (const IslandId& id : silent) {
    actions_.push_back(CloseConnection{id});
    remove(id, false, fmt::format("no heartbeat for {} s", Seconds(run_.dead_after).count()));
  }
  for (const IslandId& id : lost) remove(id, false, "its connection broke and it did not come back");
  if (now_ >= *expected_back_until_) {
    while (!expected_back_.empty()) forget_expected(IslandId{expected_back_.begin()->first});
  }
}

void RoundCoordinator::forget_expected(const IslandId& id) {
  const auto found = expected_back_.find(id);
  if (found == expected_back_.end()) return;
  leases_.give_back(found->second);
  expected_back_.erase(found);
}

// ---- what islands say

void RoundCoordinator::on(const IslandSaid& event) {
  MeshIsland* island = find(event.island);
  if (island == nullptr || !island->connected || finished_) return;
  island->last_heard = now_;
  std::visit([&](const auto& message) { said(*island, message); }, event.message);
}

void RoundCoordinator::said(MeshIsland&, const IslandHello&) {}  // only the first message of a connection counts

void RoundCoordinator::said(MeshIsland& island, const IslandHeartbeat& message) { island.heartbeat = message; }

void RoundCoordinator::said(MeshIsland& island, const IslandReady& message) {
  if (last_validator_ == island.id() && message.round == committed_) return finish();  // has no validation split
  if (!round_open_ || message.round != committed_) return;
  if (island.part == MeshIsland::Part::kReceiver && message.tokens == 0) island.ready = message;
  if (island.part != MeshIsland::Part::kTrainer) return;
  if (message.tokens > island.begun.lease_sequences * run_.sequence_length) {
    return send_away(island.id(), ErrorCode::kProtocol,
                     fmt::format("it says that it trained {} tokens in round {}, more than were leased to it",
                                 message.tokens, message.round.value));
  }
  if (!std::isfinite(message.norm_over_steps) || message.norm_over_steps < 0 ||
      !std::isfinite(message.mean_loss_nats)) {
    if (++island.non_finite_rounds < 3) return start_recovering(island);
    return send_away(island.id(), ErrorCode::kNonFinite,
                     "its pseudo-gradient was not finite three times in a row; check the machine's memory and GPUs");
  }
  if (message.tokens == 0) return;
  island.non_finite_rounds = 0;
  island.ready = message;
  if (!grace_ends_) grace_ends_ = now_ + run_.straggler_grace;
}

void RoundCoordinator::said(MeshIsland& island, const IslandHave& message) {
  if (!attempt_ || message.round != committed_ || message.attempt != attempt_->number()) return;
  attempt_->have(island.id(), message.digest);
  if (!average_due_) average_due_ = now_ + run_.straggler_grace;
  settle_attempt();
}

void RoundCoordinator::said(MeshIsland& island, const IslandAttemptFailed& message) {
  const bool of_commit =
      last_commit_ && message.round == last_commit_->round && message.attempt == last_commit_->attempt;
  if (of_commit) return start_recovering(island);  // it does not hold what was committed
  if (message.round != committed_) return;
  if (kept_ && message.attempt == kept_->attempt()) {
    if (failure_ && kept_->awaits(island.id())) failure_->add(island.id(), message);
    return kept_->report(island.id(), message.whole_buckets);
  }
  if (!attempt_ || message.attempt != attempt_->number() || !attempt_->live().contains(island.id())) return;
  ++reported_failures_;
  fail_attempt(fmt::format("{}: {}", island.id().value, message.reason), retry_delay());
  kept_->report(island.id(), message.whole_buckets);
  failure_.emplace().add(island.id(), message);
}

void RoundCoordinator::said(MeshIsland& island, const IslandApplied& message) {
  if (message.outer_step != committed_ || !last_commit_) return;
  if (island.standing == MeshIsland::Standing::kTraining) agreement_.report(island.id(), message.state_hash);
}

void RoundCoordinator::said(MeshIsland& island, const IslandRecovered& message) {
  if (island.standing != MeshIsland::Standing::kRecovering || message.outer_step != committed_) return;
  island.recovered_hash = message.state_hash;
  // One that recovers may tell what nobody knows yet; it casts no doubt on what the others agreed on.
  if (agreement_.agreed().value_or(message.state_hash) == message.state_hash) {
    agreement_.report(island.id(), message.state_hash);
  }
}

void RoundCoordinator::said(MeshIsland& island, const IslandValidation& message) {
  if (message.outer_step > committed_ || !std::isfinite(message.loss_nats)) return;
  publish(IslandValidated{island.id(), message.outer_step, message.loss_nats});
  if (last_validator_ == island.id() && message.outer_step == committed_) finish();
}

// An island speaks of its own edges only, and only of those to islands that are there.
void RoundCoordinator::said(MeshIsland& island, const IslandLinkReport& message) {
  for (const LinkReportEntry& link : message.links) {
    if (!islands_.contains(link.peer)) continue;
    const IslandId& from = link.outgoing ? island.id() : link.peer;
    const IslandId& to = link.outgoing ? link.peer : island.id();
    links_.report({from, to, link.bytes_per_second, link.rtt_seconds, link.at_least}, now_);
  }
}

void RoundCoordinator::said(MeshIsland& island, const IslandLeaving& message) {
  const IslandId id = island.id();
  message.keeps_place ? pause(island) : remove(id, true, message.reason);
  actions_.push_back(CloseConnection{id});
}

}  // namespace atl
