// RoundCoordinator: the open round, from its leases to its commit.
#include <fmt/format.h>

#include <algorithm>

#include "net/mesh/ring_choice.h"
#include "net/mesh/round_coordinator.h"

namespace atl {
namespace {

constexpr std::uint64_t kProbeBytes = 8u << 20;  // past slow start of most links, half a second at 150 Mbit/s
constexpr std::chrono::minutes kDialAgainAfter{10};
constexpr std::chrono::seconds kTakeBackPace{30};
constexpr int kLongWaits = 10;
constexpr std::chrono::seconds kEndTimeout{60};  // for the last reports and the last validation

}  // namespace

// What the state of things now calls for, whatever event led there.
void RoundCoordinator::settle() {
  if (roster_changed_ && now_ - roster_sent_ >= kRosterPace) send_roster();
  compare_hashes();
  std::vector<IslandId> recovering;
  for (const auto& [id, island] : islands_) {
    if (island.connected && island.standing == MeshIsland::Standing::kRecovering) recovering.push_back(id);
  }
  for (const IslandId& id : recovering) {
    if (MeshIsland* island = find(id)) settle_recovering(*island);
  }
  leave_laggards_behind();
  settle_inquiry();
  judge_failure();
  if (may_begin_round()) begin_round();
  if (round_open_) {
    for (auto& [id, island] : islands_) give_part(island);
    promote_receivers();
    start_grace();
    open_attempt();
  }
  settle_end();
  settle_standstill();
}

// ---- parts and leases

bool RoundCoordinator::is_last_round_done() const { return run_.max_rounds > 0 && committed_.value >= run_.max_rounds; }

bool RoundCoordinator::may_begin_round() const {
  if (round_open_ || is_last_round_done() || spoiled_) return false;
  if (restored_ && now_ < *expected_back_until_) return false;  // somebody may know more than its backup
  if (now_ < all_back_until_ && std::ranges::any_of(islands_, [](const auto& entry) {
        return entry.second.connected && entry.second.standing == MeshIsland::Standing::kRecovering;
      })) {
    return false;  // whoever is first after a way back is not to train it alone
  }
  const auto waiting_for = [this](const auto& entry) { return !islands_.contains(entry.first); };
  if (std::ranges::any_of(expected_back_, waiting_for)) return false;
  const auto trains = [](const auto& entry) {
    return entry.second.connected && entry.second.standing == MeshIsland::Standing::kTraining;
  };
  const auto there = std::ranges::count_if(islands_, trains);
  return there >= std::max(committed_.value > 0 ? 1u : run_.min_islands, run_.quorum);
}

void RoundCoordinator::begin_round() {
  round_open_ = true;
  round_began_ = now_;
  expected_back_.clear();
  std::vector<MeshIsland*> trainers;
  for (auto& [id, island] : islands_) {
    if (island.connected && island.standing == MeshIsland::Standing::kTraining) trainers.push_back(&island);
  }
  const std::set<IslandId> validators = choose_validators(trainers);
  const bool asks_all = validation_.wants_all() || validation_.knows_none();
  if (!validators.empty()) validation_.ask(committed_, validators, asks_all);
  PersistLeases leases{committed_, {}};
  RoundBegan news{committed_, {}};
  for (MeshIsland* island : trainers) {
    begin_training(*island, validators.contains(island->id()));
    leases.leases.push_back({island->id(), island->lease()});
    news.trainers.push_back(island->id());
  }
  actions_.push_back(std::move(leases));
  for (const MeshIsland* island : trainers) send(island->id(), island->begun);
  publish(std::move(news));
  dial_again(trainers);
  probe_links(trainers);
}

// One in turn, every so many rounds; all of them the first time, and when what one found is in doubt.
std::set<IslandId> RoundCoordinator::choose_validators(const std::vector<MeshIsland*>& trainers) const {
  std::set<IslandId> validators;
  const bool is_due = run_.validate_every > 0 && committed_.value % run_.validate_every == 0;
  if (validation_.wants_all() || (is_due && validation_.knows_none())) {
    for (const MeshIsland* island : trainers) validators.insert(island->id());
  } else if (is_due) {
    validators.insert(trainers[committed_.value / run_.validate_every % trainers.size()]->id());
  }
  return validators;
}

void RoundCoordinator::act_on_validation(const IslandId& by, ValidationWatch::Outcome outcome) {
  using Outcome = ValidationWatch::Outcome;
  if (outcome == Outcome::kIgnored || outcome == Outcome::kWaits) return;
  const ValidatedState found = validation_.result();
  if (outcome == Outcome::kDoubted) {
    publish(ValidationDoubted{by, found.outer_step, found.loss_nats});
  } else {
    publish(IslandValidated{by, found.outer_step, found.loss_nats});
  }
  if (outcome == Outcome::kSpoiled) {
    spoiled_ = found;
    actions_.push_back(PersistSpoiled{found});
  }
  if (last_validator_ == by && found.outer_step == committed_) finish();
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

bool RoundCoordinator::lost_too_often(const IslandId& island) const {
  const auto found = lost_attempts_.find(island);
  return found != lost_attempts_.end() && found->second >= kMostLostAttempts;
}

std::size_t RoundCoordinator::count_trainers() const {
  return static_cast<std::size_t>(std::ranges::count_if(islands_, [](const auto& entry) {
    return entry.second.part == MeshIsland::Part::kTrainer && !entry.second.sits_out && !entry.second.paused;
  }));
}

// Whoever comes within the grace that stragglers have trains in the round, where its trainers are fewer than half of
// those that are here: they are not to decide it alone because they were first.
bool RoundCoordinator::may_still_train() const {
  const auto is_here = [](const auto& entry) { return entry.second.connected; };
  const auto here = static_cast<std::size_t>(std::ranges::count_if(islands_, is_here));
  const bool is_young = now_ - round_began_ < run_.straggler_grace;
  return is_young && !attempt_ && !kept_ && expected_back_.empty() && 2 * count_trainers() < here;
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
  } else if (may_still_train()) {
    begin_training(island, false);
    actions_.push_back(PersistLeases{committed_, {{island.id(), island.lease()}}});
  } else {
    island.part = MeshIsland::Part::kReceiver;
    island.begun = HubRoundBegin{committed_, 0, 0, 0, false};
    island.awaited_until = now_ + run_.heartbeat;  // it has nothing to do first
  }
  island.sits_out = lost_too_often(island.id());
  send(island.id(), island.begun);
}

// Those who sit out are needed, whatever failed with them; but for whose work cannot be averaged. Not all the time, so
// that what keeps failing fails slowly.
void RoundCoordinator::take_back() {
  const auto sits_out = [this](const auto& entry) { return entry.second.sits_out && !left_out_.contains(entry.first); };
  if (now_ < take_back_at_ || std::ranges::none_of(islands_, sits_out)) return;
  take_back_at_ = now_ + kTakeBackPace;
  for (auto& [id, island] : islands_) {
    if (!island.sits_out || left_out_.contains(id)) continue;
    island.sits_out = false;
    if (!links_.dialable(id)) dial(island);
  }
  lost_attempts_.clear();
  stalled_attempts_ = 0;
  blame_.clear();
  failed_edges_.clear();
  links_.revive();
}

// From when most trainers are ready on, the rest has the stragglers' grace. The first one's word closes nothing: it may
// be lying.
void RoundCoordinator::start_grace() {
  std::size_t trainers = 0, ready = 0;
  for (const auto& [id, island] : islands_) {
    if (island.part != MeshIsland::Part::kTrainer || island.sits_out || island.paused) continue;
    ++trainers;
    if (island.ready) ++ready;
  }
  trainers += expected_back_.size();
  if (ready > 0 && !first_ready_) first_ready_ = now_;
  if (!grace_ends_ && 2 * ready > trainers) grace_ends_ = now_ + run_.straggler_grace;
}

// A round whose trainers are all gone, or too few, is trained by those who came meanwhile; so is one whose trainers
// cannot agree.
void RoundCoordinator::promote_receivers() {
  if (attempt_ || !expected_back_.empty()) return;
  if (count_trainers() < run_.quorum) take_back();
  const std::size_t trainers = count_trainers();
  // A trainer that is there, and never ready, does not keep those who wait for ever.
  const bool too_long =
      !grace_ends_ && now_ - round_began_ > kLongWaits * std::max(run_.straggler_grace, run_.lost_after);
  if (trainers >= run_.quorum && !lies_.exhausted() && !too_long) return;
  PersistLeases leases{committed_, {}};
  for (auto& [id, island] : islands_) {
    if (trainers == 0) island.sits_out = false;  // nobody is left for whom to sit out
    if (!island.connected || island.part != MeshIsland::Part::kReceiver) continue;
    begin_training(island, false);
    leases.leases.push_back({id, island.lease()});
  }
  if (trainers == 0) {
    kept_.reset();
    failure_.reset();
    blame_.clear();
    failed_edges_.clear();
  }
  if (leases.leases.empty()) return;
  lies_.clear();
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

// ---- commit

void RoundCoordinator::commit() {
  const OpenAttempt done = *std::exchange(attempt_, std::nullopt);
  HubCommit commit{
      committed_, done.number(), done.digest(), run_.outer_learning_rate, run_.outer_momentum, done.order(), ""};
  commit.epoch = epoch_;
  commit.holders.assign(done.live().begin(), done.live().end());
  commit.lease_cursor = leases_.cursor();
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
  for (const IslandId& id : done.live()) {
    send(id, commit);
    if (MeshIsland* island = find(id)) island->claimed.reset();  // of the state before: it is about to leave it
  }
  publish(news);
  note_accepted(done);
  last_commit_ = std::move(commit);
  close_round(done);
}

// Whose work is in the average, and whose was left out because attempts with it failed.
void RoundCoordinator::note_accepted(const OpenAttempt& done) {
  for (const AttemptMember& member : done.order()) {
    MeshIsland* island = find(member.id);
    if (island == nullptr || member.tokens == 0 || !island->ready) continue;
    norms_.accepted(member.id, island->ready->norm_over_steps);
    island->strikes = 0;
    island->left_out_for.clear();
  }
  if (!lies_.left_out()) return;
  MeshIsland* island = find(*lies_.left_out());
  if (island == nullptr) return;
  const IslandId id = island->id();
  const std::string reason =
      fmt::format("{} in round {}, and without this island they did not", lie_, committed_.value);
  // That an attempt passed without it proves nothing: a liar can choose when to lie. What it says of its bytes does.
  const bool is_proof = bad_edges_.culprit() == id || std::ranges::find(culpable_, id) != culpable_.end();
  if (is_proof) return leave_out(*island, reason);
  island->left_out_for = reason;
  publish(WorkLeftOut{id, committed_, reason});
}

void RoundCoordinator::close_round(const OpenAttempt& done) {
  // Members of this attempt told their hash of the state before it; whoever did not has lost its connection since.
  agreement_.stop_waiting();
  compare_hashes();
  committed_ = OuterStep{committed_.value + 1};
  record_epoch_ = epoch_;
  restored_ = false;
  last_holders_ = done.live();
  agreement_.begin(voters_of(*last_commit_));
  for (const IslandId& id : done.live()) agreement_.expect(id);
  hash_persisted_ = false;
  compared_ = false;
  reset_round();
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

// Nothing is left of the round and its attempts but what islands hold of it.
void RoundCoordinator::reset_round() {
  round_open_ = false;
  grace_ends_.reset();
  last_attempt_ = Attempt{0};
  attempt_.reset();
  inquiry_.reset();
  kept_.reset();
  failure_.reset();
  retry_at_ = {};
  reported_failures_ = 0;
  blame_.clear();
  failed_edges_.clear();
  left_out_.clear();
  lies_.clear();
  culpable_.clear();
  lost_attempts_.clear();
  stalled_attempts_ = 0;
  turned_ = false;
  take_back_at_ = {};
  first_ready_.reset();
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
    validation_.ask(committed_, {id}, /*all=*/false);
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
