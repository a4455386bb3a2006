// RoundCoordinator: the open round, from its leases to its commit.
#include <fmt/format.h>

#include <algorithm>

#include "net/mesh/ring_choice.h"
#include "net/mesh/round_coordinator.h"

namespace atl {
namespace {

constexpr int kDifferingDigestsTolerated = 3;
constexpr std::chrono::milliseconds kFirstRetryDelay{500};
constexpr std::chrono::milliseconds kLongestRetryDelay{5'000};
constexpr std::uint64_t kProbeBytes = 8u << 20;  // past slow start of most links, half a second at 150 Mbit/s
constexpr std::chrono::minutes kDialAgainAfter{10};
constexpr std::chrono::seconds kEndTimeout{60};  // for the last reports and the last validation

}  // namespace

// What the state of things now calls for, whatever event led there.
void RoundCoordinator::settle() {
  compare_hashes();
  std::vector<IslandId> recovering;
  for (const auto& [id, island] : islands_) {
    if (island.connected && island.standing == MeshIsland::Standing::kRecovering) recovering.push_back(id);
  }
  for (const IslandId& id : recovering) {
    if (MeshIsland* island = find(id)) settle_recovering(*island);
  }
  leave_laggards_behind();
  judge_failure();
  if (may_begin_round()) begin_round();
  if (round_open_) {
    for (auto& [id, island] : islands_) give_part(island);
    promote_receivers();
    open_attempt();
  }
  settle_end();
}

// ---- parts and leases

bool RoundCoordinator::is_last_round_done() const { return run_.max_rounds > 0 && committed_.value >= run_.max_rounds; }

bool RoundCoordinator::may_begin_round() const {
  if (round_open_ || is_last_round_done()) return false;
  const auto waiting_for = [this](const auto& entry) { return !islands_.contains(entry.first); };
  if (std::ranges::any_of(expected_back_, waiting_for)) return false;
  const auto trains = [](const auto& entry) {
    return entry.second.connected && entry.second.standing == MeshIsland::Standing::kTraining;
  };
  const auto there = std::ranges::count_if(islands_, trains);
  return there >= (last_commit_ ? 1 : run_.min_islands);
}

void RoundCoordinator::begin_round() {
  round_open_ = true;
  round_began_ = now_;
  expected_back_.clear();
  std::vector<MeshIsland*> trainers;
  for (auto& [id, island] : islands_) {
    if (island.connected && island.standing == MeshIsland::Standing::kTraining) trainers.push_back(&island);
  }
  const std::uint32_t round = committed_.value;
  const bool validates = run_.validate_every > 0 && round % run_.validate_every == 0;
  const std::size_t validator = validates ? round / run_.validate_every % trainers.size() : trainers.size();
  PersistLeases leases{committed_, {}};
  RoundBegan news{committed_, {}};
  for (std::size_t i = 0; i < trainers.size(); ++i) {
    begin_training(*trainers[i], i == validator);
    leases.leases.push_back({trainers[i]->id(), trainers[i]->lease()});
    news.trainers.push_back(trainers[i]->id());
  }
  actions_.push_back(std::move(leases));
  for (const MeshIsland* island : trainers) send(island->id(), island->begun);
  publish(std::move(news));
  dial_again(trainers);
  probe_links(trainers);
}

// Whoever could not be dialled may have opened a port since.
void RoundCoordinator::dial_again(const std::vector<MeshIsland*>& trainers) {
  for (MeshIsland* island : trainers) {
    if (!links_.dialable(island->id()) && now_ - island->dialled_at >= kDialAgainAfter) dial(*island);
  }
}

// The links are idle while the islands train.
void RoundCoordinator::probe_links(const std::vector<MeshIsland*>& trainers) {
  std::vector<IslandId> ids;
  for (const MeshIsland* island : trainers) ids.push_back(island->id());
  if (ids.size() < 3) return;  // one ring only
  for (const auto& [from, to] : links_.worth_a_probe(ids, now_)) send(to, HubProbe{from, kProbeBytes});
}

void RoundCoordinator::begin_training(MeshIsland& island, bool validate) {
  const LeaseRange lease = leases_.take(std::uint64_t{run_.inner_steps} * run_.sequences_per_step);
  island.part = MeshIsland::Part::kTrainer;
  island.begun = HubRoundBegin{committed_, run_.inner_steps, lease.first, lease.sequences, validate};
  island.ready.reset();
}

bool RoundCoordinator::has_trainer() const {
  return std::ranges::any_of(islands_, [](const auto& entry) {
    return entry.second.part == MeshIsland::Part::kTrainer && !entry.second.sits_out && !entry.second.paused;
  });
}

// For one that came to train while the round is open.
void RoundCoordinator::give_part(MeshIsland& island) {
  if (!island.connected || island.standing != MeshIsland::Standing::kTraining) return;
  if (island.part != MeshIsland::Part::kNone) return;
  const auto back = expected_back_.find(island.id());
  if (back != expected_back_.end()) {  // the hub restarted; the island has worked on since
    island.part = MeshIsland::Part::kTrainer;
    island.begun = {committed_, run_.inner_steps, back->second.first, back->second.sequences, false};
    expected_back_.erase(back);
    // An attempt of before the restart may still run.
    if (last_attempt_.value > 0) send(island.id(), HubAbort{committed_, last_attempt_, "the hub restarted"});
  } else {
    island.part = MeshIsland::Part::kReceiver;
    island.begun = HubRoundBegin{committed_, 0, 0, 0, false};
    island.awaited_until = now_ + run_.heartbeat;  // it has nothing to do first
  }
  send(island.id(), island.begun);
}

// A round whose trainers are all gone is trained by those who came meanwhile.
void RoundCoordinator::promote_receivers() {
  if (attempt_ || has_trainer() || !expected_back_.empty()) return;
  PersistLeases leases{committed_, {}};
  for (auto& [id, island] : islands_) {
    island.sits_out = false;  // nobody is left for whom to sit out
    if (!island.connected || island.part != MeshIsland::Part::kReceiver) continue;
    begin_training(island, false);
    leases.leases.push_back({id, island.lease()});
  }
  kept_.reset();
  failure_.reset();
  blame_.clear();
  if (leases.leases.empty()) return;
  const std::vector<IslandLease> given = leases.leases;
  actions_.push_back(std::move(leases));
  for (const IslandLease& lease : given) send(lease.island, find(lease.island)->begun);
}

void RoundCoordinator::drop_part(MeshIsland& island) {
  if (island.part == MeshIsland::Part::kTrainer) leases_.give_back(island.lease());
  island.part = MeshIsland::Part::kNone;
  island.ready.reset();
  island.sits_out = false;
}

// ---- attempts

std::vector<AttemptMember> RoundCoordinator::ready_members() const {
  std::vector<AttemptMember> members;
  for (const auto& [id, island] : islands_) {
    if (island.part == MeshIsland::Part::kNone || island.sits_out || !island.connected || !island.ready) continue;
    members.push_back({id, island.entry.address, island.ready->tokens});
  }
  return members;
}

void RoundCoordinator::open_attempt() {
  if (attempt_ || now_ < retry_at_) return;
  if (kept_ && !kept_->complete() && now_ < kept_due_) return;
  std::vector<AttemptMember> members = ready_members();
  std::uint64_t weight = 0;
  for (const AttemptMember& member : members) weight += member.tokens;
  bool someone_is_awaited = !expected_back_.empty();
  for (const auto& [id, island] : islands_) {
    if (island.part == MeshIsland::Part::kNone || island.sits_out) continue;
    if (island.connected && island.ready) continue;
    if (now_ < island.awaited_until || (island.connected && island.part == MeshIsland::Part::kTrainer)) {
      someone_is_awaited = true;
    }
  }
  if (weight == 0 || (someone_is_awaited && now_ < *grace_ends_)) return;
  RingChoice ring = choose_ring(std::move(members), links_, last_order_, now_);
  if (!ring.sits_out.empty()) {
    for (const IslandId& id : ring.sits_out) find(id)->sits_out = true;
    return open_attempt();
  }
  last_order_.clear();
  for (const AttemptMember& member : ring.order) last_order_.push_back(member.id);
  last_attempt_ = Attempt{last_attempt_.value + 1};
  attempt_.emplace(last_attempt_, std::move(ring.order));
  average_due_.reset();
  actions_.push_back(PersistAttempt{committed_, last_attempt_});
  HubAttempt message{committed_, last_attempt_, attempt_->order()};
  message.wire = wire_for(message.order);
  message.edge_bytes_per_second = known_rates(message.order, links_, now_);
  const bool same_wire = message.wire == std::exchange(last_wire_, message.wire);
  if (kept_ && same_wire) message.final_buckets = kept_->held_by(message.order);
  kept_.reset();
  for (const AttemptMember& member : attempt_->order()) send(member.id, message);
}

// Below 8 bits everybody dials every owner of a chunk. Where a member cannot be dialled, the ring sums hop by hop.
WireFormat RoundCoordinator::wire_for(const std::vector<AttemptMember>& members) const {
  const auto hidden = [this](const AttemptMember& member) { return !links_.dialable(member.id); };
  const bool passes_sums_on = !sums_hop_by_hop(run_.wire) && std::ranges::any_of(members, hidden);
  return passes_sums_on ? WireFormat::kInt8Block : run_.wire;
}

// It is lost to the attempt that runs, and nobody waits for what it has to say of the last one.
void RoundCoordinator::leave_attempt(const IslandId& island) {
  if (kept_) kept_->lose(island);
  if (!attempt_ || !attempt_->live().contains(island)) return;
  attempt_->lose(island);
  settle_attempt();
}

void RoundCoordinator::settle_attempt() {
  if (!attempt_) return;
  const OpenAttempt::Outcome outcome = attempt_->outcome();
  if (outcome == OpenAttempt::Outcome::kAgreed) return commit();
  if (attempt_->has_lost_a_member()) {
    std::string lost;
    for (const AttemptMember& member : attempt_->order()) {
      if (!attempt_->live().contains(member.id)) lost += (lost.empty() ? "" : ", ") + member.id.value;
    }
    return fail_attempt(lost + " was lost", {});
  }
  if (outcome != OpenAttempt::Outcome::kDiffer) return;
  const std::vector<IslandId> minority = attempt_->minority();
  ++reported_failures_;
  const bool too_often = ++differing_digests_ >= kDifferingDigestsTolerated;
  fail_attempt("the members hold different averages", retry_delay());
  kept_.reset();  // nobody knows which of them are right
  if (!too_often) return;
  differing_digests_ = 0;
  for (const IslandId& id : minority) {
    send_away(
        id, ErrorCode::kInternal,
        "its average differed from the others' three times in one round: all islands must run the same version of "
        "atoll; if they do, check this machine's memory");
  }
}

// A member that others have finished with, and that neither has the average nor says why, does not hold them up for
// ever.
void RoundCoordinator::leave_laggards_behind() {
  if (!attempt_ || !average_due_ || now_ < *average_due_) return;
  const std::vector<IslandId> laggards = attempt_->still_averaging();
  for (const IslandId& id : laggards) attempt_->lose(id);
  average_due_.reset();
  settle_attempt();
  for (const IslandId& id : laggards) start_recovering(*find(id));
}

void RoundCoordinator::fail_attempt(const std::string& reason, Clock::duration delay) {
  for (const IslandId& id : attempt_->live()) send(id, HubAbort{committed_, attempt_->number(), reason});
  publish(AttemptFailed{committed_, attempt_->number(), reason});
  kept_.emplace(attempt_->number(), attempt_->live());
  failed_order_ = attempt_->order();
  kept_due_ = now_ + run_.dead_after;
  failure_.reset();
  attempt_.reset();
  retry_at_ = now_ + delay;
}

// The first failure is retried at once: most are a death that the hub hears of a moment later.
Clock::duration RoundCoordinator::retry_delay() const {
  if (reported_failures_ <= 1) return {};
  const int doublings = std::min(reported_failures_ - 2, 8);
  return std::min<Clock::duration>(kFirstRetryDelay * (1 << doublings), kLongestRetryDelay);
}

// When all have said what they saw. An edge that both of its ends found silent is dead at once, where a ring can do
// without it; anything else is an accusation, and is counted.
void RoundCoordinator::judge_failure() {
  if (!failure_ || !kept_ || (!kept_->complete() && now_ < kept_due_)) return;
  const FailureReports reports = *std::exchange(failure_, std::nullopt);
  bool avoided = false;
  for (const auto& [a, b] : reports.silent_edges()) avoided = avoid_edge(a, b) || avoided;
  const auto& [reporter, report] = reports.blamed();
  MeshIsland* island = find(reporter);
  if (island == nullptr || avoided) return;
  // Who accuses one with whom it had no edge accuses itself.
  const bool had_edge = report.peer && had_edge_with(reporter, *report.peer);
  blame(*island, had_edge ? report.peer : std::nullopt, report.reason);
}

// In the attempt that failed last.
bool RoundCoordinator::had_edge_with(const IslandId& a, const IslandId& b) const {
  const auto place_of = [&](const IslandId& id) { return std::ranges::find(failed_order_, id, &AttemptMember::id); };
  const auto one = place_of(a), other = place_of(b);
  if (one == failed_order_.end() || other == failed_order_.end() || one == other) return false;
  const auto distance = std::abs(one - other);
  return distance == 1 || distance == std::ssize(failed_order_) - 1 || !sums_hop_by_hop(last_wire_);
}

// False, and the edge is as before, when no ring of all members does without it.
bool RoundCoordinator::avoid_edge(const IslandId& a, const IslandId& b) {
  if (!sums_hop_by_hop(last_wire_)) return false;  // everybody needs everybody: no order helps
  std::vector<AttemptMember> members = ready_members();
  if (members.size() > kMaxRing) return false;
  LinkMatrix without = links_;
  without.declare_dead(a, b, now_);
  if (!choose_ring(std::move(members), without, {}, now_).sits_out.empty()) return false;
  links_ = std::move(without);
  return true;
}

// Both ends live and their edge does not: the next order avoids it; where none can, the end with fewer tokens sits the
// round out (DESIGN, Blame).
void RoundCoordinator::blame(MeshIsland& reporter, const std::optional<IslandId>& peer, const std::string& reason) {
  if (!blame_.record(reporter.id(), peer)) return;
  if (peer && find(*peer) != nullptr) {
    if (avoid_edge(reporter.id(), *peer)) return;
    links_.declare_dead(reporter.id(), *peer, now_);
  }
  const auto tokens = [](const MeshIsland& island) { return island.ready ? island.ready->tokens : 0; };
  MeshIsland* loser = &reporter;
  MeshIsland* other = peer ? find(*peer) : nullptr;
  if (other != nullptr && other->part != MeshIsland::Part::kNone) {
    const bool other_has_less = tokens(*other) < tokens(reporter);
    const bool equal_and_later = tokens(*other) == tokens(reporter) && other->id() > reporter.id();
    if (other_has_less || equal_and_later) loser = other;
  }
  loser->sits_out = true;
  const auto can_go_on = [](const auto& entry) {
    return entry.second.ready && entry.second.ready->tokens > 0 && !entry.second.sits_out;
  };
  if (std::ranges::any_of(islands_, can_go_on)) return;
  send_away(loser->id(), ErrorCode::kInternal,
            fmt::format("its average failed {} times and no other island can take the round over: {}",
                        EdgeBlame::kTolerated, reason));
}

// ---- commit

void RoundCoordinator::commit() {
  const OpenAttempt done = *std::exchange(attempt_, std::nullopt);
  HubCommit commit{
      committed_, done.number(), done.digest(), run_.outer_learning_rate, run_.outer_momentum, done.order(), ""};
  commit.signature = sign_(commit);
  PersistCommit persist{commit, {}, Seconds(now_ - round_began_).count(), 0};
  double loss_sum = 0, tokens = 0;
  for (const AttemptMember& member : done.order()) {
    MeshIsland* island = find(member.id);
    if (island == nullptr || island->part != MeshIsland::Part::kTrainer) continue;
    persist.leases.push_back(island->lease());
    ++island->rounds_accepted;
    if (!island->ready) continue;
    loss_sum += island->ready->mean_loss_nats * static_cast<double>(member.tokens);
    tokens += static_cast<double>(member.tokens);
  }
  if (tokens > 0) persist.mean_loss_nats = loss_sum / tokens;
  const RoundCommitted news{commit, persist.seconds, persist.mean_loss_nats};
  actions_.push_back(std::move(persist));
  for (const IslandId& id : done.live()) send(id, commit);
  publish(news);
  last_commit_ = std::move(commit);
  close_round(done);
}

void RoundCoordinator::close_round(const OpenAttempt& done) {
  // Members of this attempt told their hash of the state before it; whoever did not has lost its connection since.
  agreement_.stop_waiting();
  compare_hashes();
  committed_ = OuterStep{committed_.value + 1};
  last_holders_ = done.live();
  agreement_.begin(done.live());
  hash_persisted_ = false;
  compared_ = false;
  round_open_ = false;
  grace_ends_.reset();
  last_attempt_ = Attempt{0};
  kept_.reset();
  failure_.reset();
  retry_at_ = {};
  reported_failures_ = 0;
  differing_digests_ = 0;
  blame_.clear();
  while (!expected_back_.empty()) forget_expected(IslandId{expected_back_.begin()->first});
  std::set<IslandId> averaged;  // their leases are used up
  for (const AttemptMember& member : done.order()) averaged.insert(member.id);
  for (auto& [id, island] : islands_) {
    if (averaged.contains(id)) island.part = MeshIsland::Part::kNone;
    if (done.live().contains(id)) {
      drop_part(island);
    } else {
      start_recovering(island);
    }
  }
}

// ---- the end of the run

void RoundCoordinator::settle_end() {
  if (finished_ || !is_last_round_done()) return;
  if (!end_by_) end_by_ = now_ + kEndTimeout;
  const bool late = now_ >= *end_by_;
  if (last_validator_) {
    const MeshIsland* validator = find(*last_validator_);
    if (late || validator == nullptr || !validator->connected) finish();
    return;
  }
  if (!agreement_.complete() && !late) return;
  for (const IslandId& id : agreement_.holders()) {
    const MeshIsland* holder = find(id);
    if (run_.validate_every == 0 || late || holder == nullptr || !holder->connected) continue;
    last_validator_ = id;
    send(id, HubRoundBegin{committed_, 0, 0, 0, true});  // evaluates the final parameters; trains nothing
    return;
  }
  finish();
}

void RoundCoordinator::finish() {
  finished_ = true;
  for (auto& [id, island] : islands_) {
    if (!island.connected) continue;
    send(id, HubGoodbye{ErrorCode::kAborted, "the run is finished", true});
    actions_.push_back(CloseConnection{id});
  }
  publish(RunFinished{committed_});
}

}  // namespace atl
