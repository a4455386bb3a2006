// RoundCoordinator: what was lost or cannot be decided, and the ways back.
#include <fmt/format.h>

#include <algorithm>

#include "net/mesh/round_coordinator.h"

namespace atl {
namespace {

constexpr int kRollbacksByPolicy = 2;  // to the same state; then its operator has to look
constexpr std::chrono::seconds kRollbackPause{30};
constexpr int kLongTimes = 8;  // as the first trainer took, that the others may take before it is said

}  // namespace

std::string RoundCoordinator::names(const std::vector<IslandId>& islands) const {
  std::string text;
  for (const IslandId& id : islands) {
    const auto found = islands_.find(id);
    if (!text.empty()) text += ", ";
    text += found == islands_.end() ? id.value : fmt::format("{} ({})", id.value, found->second.entry.display_name);
  }
  return text.empty() ? "nobody" : text;
}

std::optional<OuterStep> RoundCoordinator::newest_of_disks(OuterStep at_most, bool connected_only) const {
  std::optional<OuterStep> newest;
  for (const auto& [id, island] : islands_) {
    if (connected_only && !island.connected) continue;
    for (const HeldState& held : island.durable) {
      const auto known = state_hashes_.find(held.outer_step);
      const bool is_the_runs = known != state_hashes_.end() && known->second == held.state_hash;
      if (is_the_runs && held.outer_step <= at_most && (!newest || held.outer_step > *newest)) newest = held.outer_step;
    }
  }
  return newest;
}

std::optional<OuterStep> RoundCoordinator::newest_kept(OuterStep at_most) const {
  const std::optional<OuterStep> newest = newest_of_disks(at_most, /*connected_only=*/true);
  // What the run began with can be made again; but before anybody is here nobody knows what there is.
  const bool anybody = std::ranges::any_of(islands_, [](const auto& entry) { return entry.second.connected; });
  if (!newest && anybody && state_hashes_.contains(OuterStep{0})) return OuterStep{0};
  return newest;
}

std::optional<OuterStep> RoundCoordinator::safe_step() const {
  return newest_of_disks(committed_, /*connected_only=*/false);
}

// ---- why it does not go on

// While the committed state is not known, or nobody that is here holds it: after RunConfig::lost_after.
std::optional<Standstill> RoundCoordinator::standstill_of_state() const {
  using Kind = Standstill::Kind;
  const HashAgreement::Verdict verdict = agreement_.verdict();
  const bool split = verdict == HashAgreement::Verdict::kSplit;
  const bool nobody = verdict == HashAgreement::Verdict::kNobody;
  const bool waited = unsettled_since_ && now_ - *unsettled_since_ >= run_.lost_after;
  if (!split && !nobody && !waited) return std::nullopt;
  Standstill stop;
  const std::uint32_t below = committed_.value > 0 ? committed_.value - 1 : 0;
  stop.back_to = newest_kept(OuterStep{below});
  if (split) {
    stop.kind = Kind::kSplitState;
    std::map<std::string, std::vector<IslandId>> camps;
    for (const auto& [island, hash] : agreement_.votes()) camps[hash].push_back(island);
    for (const auto& [hash, islands] : camps) {
      stop.text += fmt::format("{}{} say {}...", stop.text.empty() ? "" : ", ", names(islands), hash.substr(0, 8));
    }
    stop.text = fmt::format(
        "the islands of round {} computed different outer states from the same average and none of "
        "them is held by more than half ({}): whoever is wrong has to go: `atoll hub remove ISLAND`",
        below, stop.text);
  } else if (verdict == HashAgreement::Verdict::kOpen) {
    stop.kind = Kind::kUndecided;
    stop.text = fmt::format(
        "round {} is committed, and fewer than half of the islands that hold its average have said "
        "which outer state it makes; missing: {}. When they come back the run goes on",
        below, names(agreement_.missing()));
  } else if (nobody) {
    stop.kind = Kind::kLost;
    stop.text = fmt::format(
        "every island that held the average of round {} was removed from the run before another held outer step {}",
        below, committed_.value);
  } else {
    stop.kind = Kind::kLost;
    stop.text = fmt::format(
        "no island that is here holds outer step {}, the newest that was committed; if one that does "
        "comes back, the run goes on",
        committed_.value);
  }
  return stop;
}

std::string RoundCoordinator::sitting_out() const {
  std::vector<IslandId> islands;
  for (const auto& [id, island] : islands_) {
    if (island.sits_out) islands.push_back(id);
  }
  return islands.empty() ? "" : fmt::format(" (here, but left out of this round: {})", names(islands));
}

// Half of the trainers or fewer are ready, and have waited for the others so many times as long as it took them.
std::optional<Standstill> RoundCoordinator::standstill_of_stragglers() const {
  if (!round_open_ || !first_ready_ || grace_ends_ || attempt_) return std::nullopt;
  const auto usual = std::max<Clock::duration>(*first_ready_ - round_began_, run_.straggler_grace);
  if (now_ - *first_ready_ < std::max<Clock::duration>(kLongTimes * usual, run_.lost_after)) return std::nullopt;
  std::vector<IslandId> late;
  for (const auto& [id, island] : islands_) {
    if (island.part == MeshIsland::Part::kTrainer && !island.sits_out && !island.ready) late.push_back(id);
  }
  return Standstill{
      Standstill::Kind::kStragglers,
      fmt::format("the trainers of round {} that are ready are not most of them, and the others take "
                  "far longer: {}. It goes on when they are ready; if they hang: `atoll hub remove ISLAND`",
                  committed_.value, names(late))};
}

std::optional<Standstill> RoundCoordinator::find_standstill() const {
  using Kind = Standstill::Kind;
  if (spoiled_) {
    Standstill stop{
        Kind::kSpoiled,
        fmt::format("the validation loss of outer step {} is {:.3f}, far above what it was: more than half of "
                    "the islands found it so",
                    spoiled_->outer_step.value, spoiled_->loss_nats)};
    stop.back_to = newest_kept(validation_.newest_good().value_or(OuterStep{0}));
    stop.text += fmt::format("; `atoll hub rollback --to {}` goes on with it as it is", committed_.value);
    return stop;
  }
  if (auto stop = standstill_of_state()) return stop;
  if (lies_.exhausted()) {
    return Standstill{
        Kind::kSplitAverage,
        fmt::format("the average of round {} fails again and again ({}), and so few islands train that "
                    "nobody can tell whose fault it is: {}. Remove the one that you trust less (`atoll hub "
                    "remove ISLAND`), or let another island join",
                    committed_.value, lie_, names(last_order_))};
  }
  if (auto stop = standstill_of_stragglers()) return stop;
  if (no_quorum_since_ && now_ - *no_quorum_since_ >= run_.lost_after) {
    return Standstill{Kind::kQuorum,
                      fmt::format("fewer than {} islands train, which is this run's quorum; it goes on when "
                                  "more are there{}",
                                  run_.quorum, sitting_out())};
  }
  return std::nullopt;
}

void RoundCoordinator::settle_standstill() {
  const auto is_here = [](const auto& entry) { return entry.second.connected; };
  const bool anybody = std::ranges::any_of(islands_, is_here);
  const auto holds = [this](const IslandId& id) {
    const MeshIsland* island = find(id);
    return island != nullptr && island->connected;
  };
  const bool settled = agreement_.agreed() && std::ranges::any_of(agreement_.holders(), holds);
  if (settled || !anybody || is_last_round_done()) {
    unsettled_since_.reset();
  } else if (!unsettled_since_) {
    unsettled_since_ = now_;
  }
  const bool short_of_islands =
      run_.quorum > 1 && settled && (round_open_ ? count_trainers() : islands_.size()) < run_.quorum;
  if (!short_of_islands) {
    no_quorum_since_.reset();
  } else if (!no_quorum_since_) {
    no_quorum_since_ = now_;
  }
  std::optional<Standstill> found = finished_ ? std::nullopt : find_standstill();
  if (found && found->back_to) {
    found->text +=
        fmt::format(". To go back to outer step {}, the newest that islands keep: `atoll hub rollback --to {}`",
                    found->back_to->value, found->back_to->value);
  }
  if (found != standstill_) {
    standstill_ = std::move(found);
    publish(StandstillChanged{standstill_});
  }
  if (standstill_) ask_for_rollback(*standstill_);
  notify_islands();
}

void RoundCoordinator::ask_for_rollback(const Standstill& standstill) {
  if (run_.when_lost != WhenLost::kRollBack || !standstill.back_to || wants_rollback_) return;
  if (now_ < rollback_again_) return;
  if (now_ < *expected_back_until_) return;  // who keeps a newer one may still come
  const OuterStep to = *standstill.back_to;
  if (committed_.value - to.value > kMostRoundsUndone || rollbacks_[to] >= kRollbacksByPolicy) return;
  ++rollbacks_[to];
  wants_rollback_ = true;
  actions_.push_back(WantRollback{to, standstill.text});
}

// What each island's owner is to know: why the run stands still, or why its own work was left out.
void RoundCoordinator::notify_islands() {
  for (auto& [id, island] : islands_) {
    if (!island.connected) continue;
    const std::string& text = standstill_ ? standstill_->text : island.left_out_for;
    if (text == island.noticed) continue;
    island.noticed = text;
    send(id, HubNotice{text});
  }
}

// ---- the ways back, and forth

// Everybody drops what it was doing.
void RoundCoordinator::abandon_round() {
  if (attempt_) {
    for (const IslandId& id : attempt_->live()) {
      send(id, HubAbort{committed_, attempt_->number(), "the round is given up"});
    }
  }
  reset_round();
  while (!expected_back_.empty()) forget_expected(IslandId{expected_back_.begin()->first});
  for (auto& [id, island] : islands_) drop_part(island);
}

void RoundCoordinator::on(const RollBack& event) {
  wants_rollback_ = false;
  if (event.to > committed_ || finished_) return;
  abandon_round();
  const OuterStep from = std::exchange(committed_, event.to);
  epoch_ = record_epoch_ = event.epoch;
  restored_ = false;
  actions_.push_back(PersistRollback{event.to, event.epoch, event.reason, event.automatic});
  publish(RolledBack{from, event.to, event.reason, event.automatic});
  for (const LeaseRange& lease : event.leases) leases_.give_back(lease);
  last_commit_.reset();
  last_holders_.clear();
  std::erase_if(state_hashes_, [&](const auto& entry) { return entry.first > event.to; });
  const bool is_spoiled = spoiled_ && spoiled_->outer_step <= event.to;  // its operator finds it good enough
  agreement_.begin({}, event.state_hash);
  hash_persisted_ = true;  // it is how the owner knows it
  compared_ = true;
  spoiled_.reset();
  unsettled_since_.reset();
  end_by_.reset();
  last_validator_.reset();
  validation_.go_back_to(event.to, /*as_it_is=*/is_spoiled);
  for (auto& [id, island] : islands_) {
    if (island.connected) send(id, HubWelcome{kMeshVersion, run_, committed_, {}});
  }
  place_all();
}

void RoundCoordinator::on(const RollBackFailed& event) {
  wants_rollback_ = false;
  --rollbacks_[event.to];
  rollback_again_ = now_ + kRollbackPause;
}

void RoundCoordinator::place_all() {
  all_back_until_ = now_ + run_.lost_after;
  for (auto& [id, island] : islands_) {
    start_recovering(island);
    if (island.connected && island.claimed && island.claimed->outer_step == committed_) {
      place_holder(island, island.claimed->state_hash);
    }
  }
}

// A commit of this run that this hub does not know of, because it was restored from an older backup. Records are
// ordered by epoch, then by round: what a rollback undid belongs to an earlier epoch than the rollback.
void RoundCoordinator::fast_forward(const IslandConnected& event) {
  const HubCommit& commit = *event.proven_commit;
  const OuterStep made{commit.round.value + 1};
  const bool newer = std::pair(commit.epoch, made) > std::pair(record_epoch_, committed_);
  if (!newer || commit.epoch >= epoch_) return;
  abandon_round();
  const OuterStep from = std::exchange(committed_, made);
  record_epoch_ = commit.epoch;  // restored_ stays: another may know of a newer one
  actions_.push_back(PersistFastForward{commit});
  publish(FastForwarded{from, made, event.entry.id});
  leases_.forget_before(commit.lease_cursor);
  last_commit_ = commit;
  last_holders_ = holders_of(commit);
  std::erase_if(state_hashes_, [&](const auto& entry) { return entry.first >= made; });
  agreement_.begin(voters_of(commit));
  hash_persisted_ = compared_ = false;
  spoiled_.reset();
  unsettled_since_.reset();
  for (const IslandId& id : last_holders_) expected_back_[id] = {};
  expected_back_until_ = std::max(*expected_back_until_, now_ + run_.dead_after);
  place_all();
}

}  // namespace atl
