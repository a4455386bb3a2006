#include "net/mesh/round_parts.h"

#include <algorithm>

namespace atl {
namespace {

constexpr int kMostLostAttempts = 3;  // of one island in one round; then it sits it out
constexpr std::chrono::seconds kTakeBackPace{30};
constexpr std::chrono::seconds kReturnPace{30};  // leases that one island cannot get the data of

}  // namespace

RoundParts::RoundParts(OuterStep round, CoordinatorTurn& turn, Membership& members, MeshLinks& links, LeaseBook& leases)
    : round_(round), turn_(turn), members_(members), links_(links), leases_(leases), began_(turn.now()) {}

const RoundPart& RoundParts::of(const IslandId& id) const {
  static const RoundPart kNothing;
  const auto found = parts_.find(id);
  return found == parts_.end() ? kNothing : found->second;
}

bool RoundParts::is_through(const IslandId& id) const {
  const RoundPart& part = of(id);
  return part.takes_part() && part.ready.has_value();
}

// ---- after a restart of the hub

void RoundParts::expect(const std::vector<IslandLease>& leases) {
  for (const IslandLease& lease : leases) {
    LeaseRange& its = expected_back_[lease.island];
    leases_.give_back(its);  // it had another one before
    its = lease.range;
  }
}

void RoundParts::forget_expected(const IslandId& id) {
  const auto found = expected_back_.find(id);
  if (found == expected_back_.end()) return;
  leases_.give_back(found->second);
  expected_back_.erase(found);
}

void RoundParts::forget_expected() {
  for (const auto& [id, lease] : expected_back_) leases_.give_back(lease);
  expected_back_.clear();
}

// ---- parts and leases

void RoundParts::train(const IslandId& id, bool validate) {
  const RunConfig& run = turn_.run();
  train(id, validate, leases_.take(std::uint64_t{run.inner_steps} * run.sequences_per_step));
}

void RoundParts::train(const IslandId& id, bool validate, LeaseRange lease) {
  RoundPart& part = parts_[id];
  part.role = RoundPart::Role::kTrainer;
  part.begun = begun_with(lease, validate);
  part.told = false;
  part.ready.reset();
}

HubRoundBegin RoundParts::begun_with(LeaseRange lease, bool validate) const {
  return {round_,     turn_.run().inner_steps, lease.first,         lease.sequences, validate,
          fragment(), turn_.decay(),           turn_.mixture().eras};
}

void RoundParts::only_receive(const IslandId& id) {
  RoundPart& part = parts_[id];
  part.role = RoundPart::Role::kReceiver;
  part.begun = HubRoundBegin{round_, 0, 0, 0, false, fragment()};
  part.awaited_until = turn_.now() + turn_.run().heartbeat;  // it has nothing to do first
}

void RoundParts::return_lease(const IslandId& id, bool averages) {
  const MeshIsland* island = members_.find(id);
  if (island == nullptr) return;
  leases_.put_off(of(id).lease());
  const bool first = !returned_at_.contains(id);
  returned_at_[id] = turn_.now();
  if (first && !averages) {
    train(id, false);
    turn_.act(PersistLeases{round_, {{id, of(id).lease()}}});
  } else {
    only_receive(id);
    parts_[id].ready.reset();
  }
  tell(*island);
}

bool RoundParts::lacks_data() const {
  return count_trainers() == 0 && std::ranges::any_of(returned_at_, [this](const auto& entry) {
           return members_.is_here(entry.first) && turn_.now() - entry.second < 2 * kReturnPace;
         });
}

void RoundParts::begin(const std::vector<MeshIsland*>& trainers, const std::set<IslandId>& validators,
                       const std::set<IslandId>& evaluators) {
  PersistLeases leases{round_, {}};
  RoundBegan news{round_, {}};
  for (const MeshIsland* island : trainers) {
    train(island->id(), validators.contains(island->id()));
    parts_[island->id()].begun.evaluate = evaluators.contains(island->id());
    leases.leases.push_back({island->id(), of(island->id()).lease()});
    news.trainers.push_back(island->id());
  }
  turn_.act(std::move(leases));
  std::uint64_t next = leases_.cursor();
  for (const MeshIsland* island : trainers) {
    HubRoundBegin& begun = parts_[island->id()].begun;
    begun.expected_sequence = next;
    next += begun.lease_sequences;
    tell(*island);
  }
  turn_.publish(std::move(news));
}

// Whoever comes within the grace that stragglers have trains in the round, where its trainers are fewer than half of
// those that are here: they are not to decide it alone because they were first.
bool RoundParts::may_still_train(bool averages) const {
  const bool is_young = turn_.now() - began_ < turn_.run().straggler_grace;
  return is_young && !averages && expected_back_.empty() && 2 * count_trainers() < members_.count_here();
}

// One whose process died comes back with what it had done of its lease, which nobody else has got meanwhile.
bool RoundParts::takes_up_work(const MeshIsland& island, bool averages) {
  if (!island.work || island.work->round != round_ || averages) return false;
  const LeaseRange lease{island.work->lease_first_sequence, island.work->lease_sequences};
  const std::uint64_t whole = std::uint64_t{turn_.run().inner_steps} * turn_.run().sequences_per_step;
  if (lease.sequences != whole || !leases_.take(lease)) return false;
  train(island.id(), false, lease);
  return true;
}

void RoundParts::give(MeshIsland& island, bool averages, Attempt last_attempt) {
  const IslandId& id = island.id();
  if (!island.trains() || of(id).role != RoundPart::Role::kNone) return;
  const auto back = expected_back_.find(id);
  if (back == expected_back_.end() && !may_work(id)) return;
  RoundPart& part = parts_[id];
  if (back != expected_back_.end()) {  // the hub restarted; the island has worked on since
    part.role = RoundPart::Role::kTrainer;
    part.begun = begun_with(back->second, false);
    expected_back_.erase(back);
    // An attempt of before the restart may still run.
    if (last_attempt.value > 0) turn_.send(id, HubAbort{round_, last_attempt, "the hub restarted", fragment()});
  } else if (!members_.budget().owes(id) && (takes_up_work(island, averages) || may_still_train(averages))) {
    if (part.role == RoundPart::Role::kNone) train(id, false);
    turn_.act(PersistLeases{round_, {{id, part.lease()}}});
  } else {
    only_receive(id);
  }
  part.told = false;
  part.sits_out = must_sit_out(id);
  tell(island);
}

std::vector<IslandId> RoundParts::receivers() const {
  std::vector<IslandId> islands;
  for (const auto& [id, island] : members_.islands()) {
    const auto returned = returned_at_.find(id);
    if (returned != returned_at_.end() && turn_.now() - returned->second < kReturnPace) continue;
    if (island.connected && of(id).role == RoundPart::Role::kReceiver) islands.push_back(id);
  }
  return islands;
}

void RoundParts::promote(const std::vector<IslandId>& receivers) {
  PersistLeases leases{round_, {}};
  for (const IslandId& id : receivers) {
    train(id, false);
    leases.leases.push_back({id, of(id).lease()});
  }
  turn_.act(std::move(leases));
  for (const IslandId& id : receivers) tell(*members_.find(id));
}

void RoundParts::tell(const MeshIsland& island) {
  RoundPart& part = parts_[island.id()];
  if (part.role == RoundPart::Role::kNone || !may_work(island.id())) return;
  part.told = true;
  turn_.send(island.id(), part.begun);
}

void RoundParts::tell_the_untold() {
  for (const auto& [id, island] : members_.islands()) {
    if (island.trains() && !of(id).told) tell(island);
  }
}

void RoundParts::disconnected(const IslandId& id, bool averages) {
  RoundPart& part = parts_[id];
  part.awaited_until = averages ? turn_.now() : turn_.now() + turn_.run().heartbeat;
  part.ready.reset();
  part.told = false;
}

void RoundParts::drop(const IslandId& id, bool in_average) {
  RoundPart& part = parts_[id];
  if (part.role == RoundPart::Role::kTrainer) {
    if (in_average) {
      in_average_[id] = part.lease();
    } else {
      leases_.give_back(part.lease());
    }
  }
  part.role = RoundPart::Role::kNone;
  part.ready.reset();
  part.sits_out = false;
}

void RoundParts::forget(const IslandId& id, bool in_average) {
  drop(id, in_average);
  parts_.erase(id);
}

void RoundParts::average_failed() {
  for (const auto& [id, lease] : in_average_) leases_.give_back(lease);
  in_average_.clear();
}

LeaseRange RoundParts::lease_of(const IslandId& id) const {
  if (const auto found = in_average_.find(id); found != in_average_.end()) return found->second;
  return of(id).role == RoundPart::Role::kTrainer ? of(id).lease() : LeaseRange{};
}

void RoundParts::close(const std::set<IslandId>& averaged) {
  forget_expected();
  std::erase_if(in_average_, [&](const auto& entry) { return averaged.contains(entry.first); });
  average_failed();
  for (const auto& [id, part] : parts_) {
    const bool is_used_up = averaged.contains(id);
    if (part.role == RoundPart::Role::kTrainer && !is_used_up) leases_.give_back(part.lease());
  }
  parts_.clear();
}

// ---- who is ready, and who is waited for

std::vector<AttemptMember> RoundParts::ready_members() const {
  std::vector<AttemptMember> members;
  for (const auto& [id, island] : members_.islands()) {
    const RoundPart& part = of(id);
    if (!part.takes_part() || !island.connected || !part.ready) continue;
    members.push_back({id, island.entry.address, part.ready->tokens});
  }
  return members;
}

std::vector<AttemptMember> RoundParts::likely_members() const {
  std::vector<AttemptMember> members;
  for (const auto& [id, island] : members_.islands()) {
    const RoundPart& part = of(id);
    if (!part.takes_part() || !island.connected || (!part.trains() && !part.ready)) continue;
    const std::uint64_t leased = part.begun.lease_sequences * turn_.run().sequence_length;
    members.push_back({id, island.entry.address, part.ready ? part.ready->tokens : leased});
  }
  return members;
}

std::size_t RoundParts::count_trainers() const {
  const auto trains = [this](const auto& entry) { return of(entry.first).trains() && !entry.second.paused; };
  return static_cast<std::size_t>(std::ranges::count_if(members_.islands(), trains));
}

std::size_t RoundParts::least_members() const {
  const auto is_ready = [this](const auto& entry) {
    const RoundPart& part = of(entry.first);
    const bool counts = !is_left_out(entry.first) && !members_.budget().owes(entry.first);
    return part.role != RoundPart::Role::kNone && entry.second.connected && part.ready && counts;
  };
  return (static_cast<std::size_t>(std::ranges::count_if(members_.islands(), is_ready)) + 1) / 2;
}

std::vector<IslandId> RoundParts::awaited() const {
  std::vector<IslandId> islands;
  for (const auto& [id, lease] : expected_back_) islands.push_back(id);
  for (const auto& [id, island] : members_.islands()) {
    const RoundPart& part = of(id);
    if (!part.takes_part() || (island.connected && part.ready)) continue;
    const bool trains = island.connected && part.role == RoundPart::Role::kTrainer;
    if (turn_.now() < part.awaited_until || trains) islands.push_back(id);
  }
  return islands;
}

std::vector<IslandId> RoundParts::late() const {
  std::vector<IslandId> islands;
  for (const auto& [id, island] : members_.islands()) {
    if (of(id).trains() && !of(id).ready) islands.push_back(id);
  }
  return islands;
}

std::vector<IslandId> RoundParts::sitting_out() const {
  std::vector<IslandId> islands;
  for (const auto& [id, island] : members_.islands()) {
    if (of(id).sits_out) islands.push_back(id);
  }
  return islands;
}

void RoundParts::start_grace() {
  std::size_t trainers = 0, ready = 0;
  for (const auto& [id, island] : members_.islands()) {
    if (!of(id).trains() || island.paused) continue;
    ++trainers;
    if (of(id).ready) ++ready;
  }
  trainers += expected_back_.size();
  if (ready > 0 && !first_ready_) first_ready_ = turn_.now();
  if (grace_ends_) return;
  const bool most_are = 2 * ready > trainers;
  if (most_are && trainers >= 3) members_.note_inner_phase(turn_.now() - began_);
  if (most_are || (2 * ready == trainers && is_half_late())) grace_ends_ = turn_.now() + turn_.run().straggler_grace;
}

// Where others sit out two may be left to train, of which one could hold the run up for ever: what rounds of more take
// tells which of them is late.
bool RoundParts::is_half_late() const {
  const auto usual = members_.usual_inner_phase();
  return usual && members_.islands().size() >= 3 && turn_.now() - began_ > *usual * 3 / 2;
}

bool RoundParts::takes_too_long() const { return !grace_ends_ && turn_.now() - began_ > turn_.patience(); }

// ---- who sits out

void RoundParts::lost_attempt(const IslandId& id) {
  if (++lost_attempts_[id] >= kMostLostAttempts) keep_out(id);
}

bool RoundParts::lost_too_often(const IslandId& id) const {
  const auto found = lost_attempts_.find(id);
  return found != lost_attempts_.end() && found->second >= kMostLostAttempts;
}

bool RoundParts::must_sit_out(const IslandId& id) const {
  return kept_out_.contains(id) || lost_too_often(id) || (members_.budget().owes(id) && members_.islands().size() > 2);
}

void RoundParts::keep_out(const IslandId& id) {
  parts_[id].sits_out = true;
  kept_out_.insert(id);
}

void RoundParts::let_back(const IslandId& id) {
  if (is_left_out(id)) return;
  kept_out_.erase(id);
  parts_[id].sits_out = must_sit_out(id);
}

void RoundParts::leave_out(const IslandId& id) {
  keep_out(id);
  left_out_.insert(id);
}

bool RoundParts::take_back() {
  const auto sits_out = [this](const auto& entry) { return of(entry.first).sits_out && !is_left_out(entry.first); };
  if (turn_.now() < take_back_at_ || std::ranges::none_of(members_.islands(), sits_out)) return false;
  take_back_at_ = turn_.now() + kTakeBackPace;
  for (auto& [id, island] : members_.islands()) {
    if (!of(id).sits_out || is_left_out(id)) continue;
    parts_[id].sits_out = false;
    links_.dial_if_hidden(island);
  }
  lost_attempts_.clear();
  kept_out_ = left_out_;
  links_.revive();
  return true;
}

void RoundParts::let_all_take_part() {
  kept_out_.clear();
  for (auto& [id, part] : parts_) part.sits_out = false;
}

}  // namespace atl
