#include "net/mesh/round_coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace atl {
namespace {

constexpr std::chrono::hours kLongestPause{7 * 24};  // then its place is free
// A hub that was restored waits so many times dead_after for islands that know more than its backup.
constexpr int kRestoredPatience = 10;
constexpr double kMostLoss = 1e6;  // nats a token; of a guess among all tokens it is the logarithm of their number

// A mean loss over tokens, and not what would make of others' losses no mean.
bool is_loss(double nats) { return std::isfinite(nats) && nats >= 0 && nats <= kMostLoss; }

}  // namespace

RoundCoordinator::RoundCoordinator(RunConfig run, CoordinatorMemory memory, CommitSigner sign)
    : run_(std::move(run)),
      sign_(std::move(sign)),
      committed_(memory.committed),
      last_commit_(std::move(memory.last_commit)),
      epoch_(memory.epoch),
      record_epoch_(memory.record_epoch),
      restored_(memory.restored),
      state_hashes_(std::move(memory.state_hashes)),
      leases_(memory.lease_cursor, memory.returned_leases),
      round_open_(!memory.open_leases.empty()),
      last_attempt_(memory.last_attempt),
      norms_(run_.norm_bound),
      validation_(run_.validation_rise, memory.validations),
      spoiled_(memory.spoiled) {
  for (const IslandLease& lease : memory.open_leases) expected_back_[lease.island] = lease.range;
  Voters voters;
  if (last_commit_) {
    last_holders_ = holders_of(*last_commit_);
    voters = voters_of(*last_commit_);
    for (const AttemptMember& member : last_commit_->members) {
      if (!round_open_) expected_back_[member.id] = {};
    }
  }
  agreement_.begin(std::move(voters), std::move(memory.agreed_hash));
  for (const IslandId& id : memory.removed) agreement_.unseat(id);
  hash_persisted_ = agreement_.agreed().has_value();
}

RoundCoordinator::Actions RoundCoordinator::next(const CoordinatorEvent& event, Clock::time_point now) {
  now_ = now;
  if (!expected_back_until_) expected_back_until_ = now + run_.dead_after * (restored_ ? kRestoredPatience : 1);
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
  if (standstill_) return Phase::kStandstill;
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
  if (event.proven_epoch > epoch_) {
    actions_.push_back(StepDown{event.proven_epoch});
    return;
  }
  if (event.proven_commit) fast_forward(event);
  send(id, HubWelcome{kMeshVersion, run_, committed_, {}});
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
  agreement_.drop(id);  // what it held before may be gone
  island.durable = event.hello.durable;
  island.claimed.reset();
  if (event.hello.outer_step) island.claimed = HeldState{*event.hello.outer_step, event.hello.state_hash};
  island.noticed.clear();
  // The others hear of it at once or within a second: one that comes and goes all the time is not to keep them busy.
  roster_changed_ = true;
  if (now_ - roster_sent_ < kRosterPace) send(id, roster());
  if (is_new || moved || !links_.dialable(id)) dial(island);
  if (is_new) publish(IslandJoined{id, event.entry.display_name});
  place_returning(island, event.hello);
}

// An island that comes (back) is told again where its round stands: what was sent before may never have arrived.
void RoundCoordinator::place_returning(MeshIsland& island, const IslandHello& hello) {
  const auto& agreed = agreement_.agreed();
  if (hello.outer_step == committed_) return place_holder(island, hello.state_hash);
  const auto before = state_hashes_.find(hello.outer_step.value_or(committed_));
  const bool is_the_runs = before == state_hashes_.end() || before->second == hello.state_hash;
  if (last_commit_ && hello.outer_step == last_commit_->round && is_the_runs && last_holders_.contains(island.id())) {
    // Perhaps another process than the one that held the average: it keeps its place until it says.
    island.standing = MeshIsland::Standing::kRecovering;
    island.told_to_recover = committed_;
    island.recovered_hash.clear();
    agreement_.expect(island.id());
    return send(island.id(), *last_commit_);
  }
  start_recovering(island);
  if (committed_.value == 0 && agreed) send_recover(island);
}

// One that says that it holds the committed outer step. While nobody knows which state that is, its word is a vote if
// it has one, and it keeps what place it has; it trains when the others' words bear it out.
void RoundCoordinator::place_holder(MeshIsland& island, const std::string& hash) {
  const auto& agreed = agreement_.agreed();
  if (agreed && hash != *agreed) {
    start_recovering(island);
    return said(island, IslandRecovered{committed_, hash});
  }
  agreement_.report(island.id(), hash);
  if (agreed) {
    island.standing = MeshIsland::Standing::kTraining;
    island.recovered_hash.clear();
    island.wrong_recoveries = 0;
  } else if (island.standing == MeshIsland::Standing::kRecovering) {
    island.told_to_recover.reset();
    island.recovered_hash = hash;
  }
  if (island.standing == MeshIsland::Standing::kTraining && island.part != MeshIsland::Part::kNone) {
    send(island.id(), island.begun);
  }
}

HubRoster RoundCoordinator::roster() const {
  HubRoster roster;
  for (const auto& [id, island] : islands_) {
    if (!island.paused) roster.islands.push_back(island.entry);
  }
  return roster;
}

void RoundCoordinator::send_roster() {
  roster_changed_ = false;
  roster_sent_ = now_;
  const HubRoster newest = roster();
  for (const auto& [id, island] : islands_) {
    if (island.connected) send(id, newest);
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
  act_on_validation(island.id(), validation_.drop(island.id()));
  publish(IslandPaused{island.id(), island.entry.display_name});
  roster_changed_ = true;
}

void RoundCoordinator::remove(const IslandId& id, bool left, const std::string& reason) {
  MeshIsland* island = find(id);
  if (island == nullptr) return;
  disconnect(*island);
  drop_part(*island);
  act_on_validation(id, validation_.drop(id));
  const bool was_source = agreement_.agreed() && agreement_.reported(id) == agreement_.agreed();
  agreement_.drop(id);
  links_.forget(id);
  publish(IslandGone{id, island->entry.display_name, left, reason});
  islands_.erase(id);
  roster_changed_ = true;
  if (lies_.exhausted()) lies_.clear();  // others may agree without it
  if (!was_source) return;
  for (auto& [other_id, other] : islands_) {  // whoever recovers from it needs other sources
    if (other.standing == MeshIsland::Standing::kRecovering) other.told_to_recover.reset();
  }
}

void RoundCoordinator::send_away(const IslandId& id, ErrorCode code, const std::string& message) {
  send(id, HubGoodbye{code, message, false});
  actions_.push_back(CloseConnection{id});
  remove(id, false, message);
}

// What it said of the outer state is void, too: its operator's word decides what the islands' own could not. Whoever is
// here is told, also of one that is away: it may still have connections to them.
void RoundCoordinator::on(const IslandRemoved& event) {
  const bool was_here = find(event.island) != nullptr;
  if (was_here) remove(event.island, true, event.reason);
  send_roster();
  agreement_.unseat(event.island);
  last_holders_.erase(event.island);
  forget_expected(event.island);
  bad_edges_.forget(event.island);
  norms_.forget(event.island);
  if (was_here) actions_.push_back(CloseConnection{event.island});
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
  const bool of_its_round = std::visit(
      [&](const auto& message) {
        if constexpr (requires { message.fragment; }) return message.fragment == run_.fragment_of(message.round);
        return true;
      },
      event.message);
  if (!of_its_round)
    return send_away(island->id(), ErrorCode::kProtocol, "it takes a round for one of another fragment");
  std::visit([&](const auto& message) { said(*island, message); }, event.message);
}

void RoundCoordinator::said(MeshIsland&, const IslandHello&) {}  // only the first message of a connection counts

void RoundCoordinator::said(MeshIsland& island, const IslandHeartbeat& message) { island.heartbeat = message; }

void RoundCoordinator::said(MeshIsland& island, const IslandReady& message) {
  if (last_validator_ == island.id() && message.round == committed_) return finish();  // has no validation split
  if (island.part == MeshIsland::Part::kTrainer && message.round == committed_) {
    act_on_validation(island.id(), validation_.drop(island.id()));  // it would have told by now
  }
  if (!round_open_ || message.round != committed_) return;
  if (island.part == MeshIsland::Part::kReceiver && message.tokens == 0) island.ready = message;
  if (island.part != MeshIsland::Part::kTrainer) return;
  if (message.tokens > island.begun.lease_sequences * run_.sequence_length) {
    return send_away(island.id(), ErrorCode::kProtocol,
                     fmt::format("it says that it trained {} tokens in round {}, more than were leased to it",
                                 message.tokens, message.round.value));
  }
  if (!std::isfinite(message.norm_over_steps) || message.norm_over_steps < 0 || !is_loss(message.mean_loss_nats)) {
    if (++island.non_finite_rounds < 3) return start_recovering(island);
    return send_away(island.id(), ErrorCode::kNonFinite,
                     "its pseudo-gradient was not finite three times in a row; check the machine's memory and GPUs");
  }
  if (message.tokens == 0) return;
  island.non_finite_rounds = 0;
  island.ready = message;
}

void RoundCoordinator::said(MeshIsland& island, const IslandHave& message) {
  if (!attempt_ || message.round != committed_ || message.attempt != attempt_->number()) return;
  attempt_->have(island.id(), message.digest);
  // The first one's word leaves nobody behind, for it may be lying; but it bounds how long the attempt may take.
  if (!stall_due_) stall_due_ = now_ + run_.straggler_grace * (1 << std::min(stalled_attempts_, kMostStallDoublings));
  if (!average_due_ && attempt_->most_trainers_have_it()) average_due_ = now_ + run_.straggler_grace;
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
  if (message.too_large) {
    const std::string reason =
        fmt::format("{} holds an average that is larger than its parts can be", island.id().value);
    fail_attempt(reason, retry_delay());
    kept_.reset();
    return search_for_liar({}, reason);
  }
  fail_attempt(fmt::format("{}: {}", island.id().value, message.reason), retry_delay());
  kept_->report(island.id(), message.whole_buckets);
  failure_.emplace().add(island.id(), message);
}

void RoundCoordinator::said(MeshIsland& island, const IslandApplied& message) {
  island.claimed = HeldState{message.outer_step, message.state_hash};
  if (message.outer_step != committed_) return;
  if (island.standing == MeshIsland::Standing::kRecovering) return place_holder(island, message.state_hash);
  agreement_.report(island.id(), message.state_hash);
}

void RoundCoordinator::said(MeshIsland& island, const IslandRecovered& message) {
  island.claimed = HeldState{message.outer_step, message.state_hash};
  if (island.standing != MeshIsland::Standing::kRecovering || message.outer_step != committed_) return;
  island.recovered_hash = message.state_hash;
  // One that recovers may tell what nobody knows yet; it casts no doubt on what the others agreed on.
  if (agreement_.agreed().value_or(message.state_hash) == message.state_hash) {
    agreement_.report(island.id(), message.state_hash);
  }
}

void RoundCoordinator::said(MeshIsland& island, const IslandValidation& message) {
  if (!is_loss(message.loss_nats)) return;
  act_on_validation(island.id(), validation_.report(island.id(), message.outer_step, message.loss_nats));
}

void RoundCoordinator::said(MeshIsland& island, const IslandDurable& message) { island.durable = message.states; }

void RoundCoordinator::said(MeshIsland& island, const IslandChunks& message) {
  if (inquiry_ && message.round == committed_ && message.attempt == inquiry_->attempt()) {
    inquiry_->answer(island.id(), message.digests);
  }
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
