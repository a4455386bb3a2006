#include "net/mesh/committed_state.h"

#include <algorithm>

#include "net/mesh/hash_agreement.h"

namespace atl {
namespace {

// A hub that was restored waits so many times dead_after for islands that know more than its backup.
constexpr int kRestoredPatience = 10;

}  // namespace

CommittedState::CommittedState(CoordinatorTurn& turn, const CoordinatorMemory& memory, CommitSigner sign)
    : turn_(turn),
      sign_(std::move(sign)),
      committed_(memory.committed),
      last_commit_(memory.last_commit),
      epoch_(memory.epoch),
      record_epoch_(memory.record_epoch),
      restored_(memory.restored),
      removed_(memory.removed) {
  for (const HubCommit& commit : memory.commits_before) remember(commit);
  if (last_commit_ && !before_.empty() && before_.back().round.value + 1 != last_commit_->round.value) before_.clear();
  if (last_commit_) last_holders_ = holders_that_may_come(*last_commit_);
}

std::set<IslandId> CommittedState::holders_that_may_come(const HubCommit& commit) const {
  std::set<IslandId> holders = holders_of(commit);
  std::erase_if(holders, [this](const IslandId& island) { return removed_.contains(island); });
  return holders;
}

void CommittedState::forget_holder(const IslandId& island) {
  removed_.insert(island);
  last_holders_.erase(island);
}

bool CommittedState::is_of_run(OuterStep round) const {
  const std::uint32_t most = turn_.run().max_rounds;
  return most == 0 || round.value < most;
}

void CommittedState::begin_waiting() {
  if (!wait_until_) wait_until_ = turn_.now() + turn_.run().dead_after * (restored_ ? kRestoredPatience : 1);
}

HubCommit CommittedState::sign(HubCommit commit) const {
  commit.epoch = epoch_;
  commit.signature = sign_(commit);
  return commit;
}

std::vector<HubCommit> CommittedState::commits_since(OuterStep held, const IslandId& island) const {
  std::vector<HubCommit> commits;
  for (const HubCommit& commit : before_) {
    if (commit.round >= held && holders_of(commit).contains(island)) commits.push_back(commit);
  }
  if (last_commit_ && last_commit_->round >= held && may_hold_last(island)) commits.push_back(*last_commit_);
  return held.value + commits.size() == committed_.value ? commits : std::vector<HubCommit>();
}

// A round that is missing before it was never known here (go_forth): nobody is led across.
void CommittedState::remember(const HubCommit& commit) {
  if (!before_.empty() && before_.back().round.value + 1 != commit.round.value) before_.clear();
  before_.push_back(commit);
  if (before_.size() >= kCommitsRemembered) before_.pop_front();
}

bool CommittedState::is_commit_of_late(OuterStep round, Attempt attempt) const {
  return round.value + turn_.run().fragments >= committed_.value && remembers(round, attempt);
}

bool CommittedState::remembers(OuterStep round, Attempt attempt) const {
  const auto is_it = [&](const HubCommit& commit) { return commit.round == round && commit.attempt == attempt; };
  return (last_commit_ && is_it(*last_commit_)) || std::ranges::any_of(before_, is_it);
}

void CommittedState::advance(const HubCommit& commit) {
  if (last_commit_) remember(*last_commit_);
  last_commit_ = commit;
  last_holders_ = {commit.holders.begin(), commit.holders.end()};
  committed_ = OuterStep{commit.round.value + 1};
  record_epoch_ = epoch_;
  restored_ = false;
}

bool CommittedState::is_newer(const HubCommit& commit) const {
  const OuterStep made{commit.round.value + 1};
  return std::pair(commit.epoch, made) > std::pair(record_epoch_, committed_) && commit.epoch < epoch_;
}

void CommittedState::go_forth(const HubCommit& commit, const IslandId& shown_by) {
  const OuterStep made{commit.round.value + 1};
  const OuterStep from = std::exchange(committed_, made);
  record_epoch_ = commit.epoch;  // restored_ stays: another may know of a newer one
  turn_.act(PersistFastForward{commit});
  turn_.publish(FastForwarded{from, made, shown_by});
  // The next round of the same epoch: nothing was undone in between.
  const bool is_next = last_commit_ && commit.round == from && commit.epoch == last_commit_->epoch;
  is_next ? remember(*last_commit_) : before_.clear();
  last_commit_ = commit;
  last_holders_ = holders_that_may_come(commit);
  wait_until_ = std::max(*wait_until_, turn_.now() + turn_.run().dead_after);
}

void CommittedState::go_back(const RollBack& event) {
  const OuterStep from = std::exchange(committed_, event.to);
  epoch_ = record_epoch_ = event.epoch;
  restored_ = false;
  turn_.act(PersistRollback{event.to, event.epoch, event.reason, event.automatic});
  turn_.publish(RolledBack{from, event.to, event.reason, event.automatic});
  before_.clear();
  last_commit_.reset();
  last_holders_.clear();
}

}  // namespace atl
