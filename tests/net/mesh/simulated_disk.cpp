#include "tests/net/mesh/simulated_disk.h"

#include <algorithm>

namespace atl {

SimulatedDisk::SimulatedDisk(SimulatedWorld& world) : world_(&world) {
  memory_.agreed_hash = world.honest_hashes[0];
  memory_.state_hashes[OuterStep{0}] = world.honest_hashes[0];
}

CoordinatorMemory SimulatedDisk::start() {
  memory_.begun.clear();
  memory_.returned_leases.clear();
  memory_.lease_cursor = lease_floor_;
  std::map<OuterStep, std::vector<IslandLease>> begun;
  for (const auto& [first, row] : leases_) {
    const auto& [round, lease] = row;
    memory_.lease_cursor = std::max(memory_.lease_cursor, first + lease.range.sequences);
    if (used_up_.contains(first)) continue;
    if (round >= memory_.committed) {
      begun[round].push_back(lease);
    } else {
      memory_.returned_leases.push_back(lease.range);
    }
  }
  for (auto& [round, leases] : begun) memory_.begun.push_back({round, std::move(leases), attempts_[round]});
  ++memory_.epoch;
  return memory_;
}

RollBack SimulatedDisk::decide_rollback(OuterStep to, bool automatic) {
  RollBack event{to, memory_.state_hashes.at(to), ++memory_.epoch, {}, "asked for", automatic};
  for (const auto& [first, row] : leases_) {
    if (row.first >= to && used_up_.contains(first)) event.leases.push_back(row.second.range);
  }
  return event;
}

void SimulatedDisk::restore(const SimulatedDisk& backup) {
  const std::uint64_t epoch = memory_.epoch, floor = lease_floor_;
  *this = backup;
  memory_.epoch = epoch;  // by the clock, a later one than any before
  memory_.restored = true;
  lease_floor_ = floor;
  committed_leases_.clear();
}

bool SimulatedDisk::is_commit_of_late(const HubCommit& commit) const {
  const auto is_it = [&](const HubCommit& one) { return one.round == commit.round && one.digest == commit.digest; };
  return (memory_.last_commit && is_it(*memory_.last_commit)) || std::ranges::any_of(memory_.commits_before, is_it);
}

void SimulatedDisk::save(const PersistLeases& leases) {
  const std::uint32_t committed = memory_.committed.value;
  if (leases.round.value < committed || leases.round.value >= committed + world_->run.fragments) {
    world_->violate("round " + std::to_string(leases.round.value) + " is begun, and " + std::to_string(committed) +
                    " are committed");
  }
  for (const IslandLease& lease : leases.leases) {
    if (used_up_.contains(lease.range.first)) world_->violate("a used up lease is given out again");
    leases_[lease.range.first] = {leases.round, lease};
  }
}

void SimulatedDisk::save(const PersistAttempt& attempt) {
  if (attempt.attempt.value <= attempts_[attempt.round].value) world_->violate("an attempt's number is used again");
  attempts_[attempt.round] = attempt.attempt;
}

void SimulatedDisk::save(const PersistCommit& persist) {
  const HubCommit& commit = persist.commit;
  const std::string number = std::to_string(commit.round.value);
  if (commit.round < memory_.committed) world_->violate("round " + number + " is committed twice");
  if (commit.round > memory_.committed) world_->violate("round " + number + " is committed before the one before it");
  for (const LeaseRange& lease : persist.leases) {
    if (!used_up_.insert(lease.first).second) world_->violate("a lease is committed twice");
    committed_leases_.push_back(lease);
  }
  memory_.committed = OuterStep{commit.round.value + 1};
  if (memory_.last_commit) memory_.commits_before.push_back(*memory_.last_commit);
  if (memory_.commits_before.size() >= kCommitsRemembered) memory_.commits_before.pop_front();
  memory_.last_commit = commit;
  memory_.record_epoch = commit.epoch;
  memory_.restored = false;
  if (!memory_.agreed_hash) world_->violate("round " + number + " is committed upon a state that nobody knows");
  memory_.agreed_hash.reset();
  std::erase_if(memory_.state_hashes, [&](const auto& entry) { return entry.first >= memory_.committed; });
}

void SimulatedDisk::save(const PersistStateHash& hash) {
  if (hash.outer_step == memory_.committed) memory_.agreed_hash = hash.state_hash;
  memory_.state_hashes[hash.outer_step] = hash.state_hash;
  const auto honest = world_->honest_hashes.find(hash.outer_step.value);
  if (honest != world_->honest_hashes.end() && honest->second != hash.state_hash) {
    world_->violate("a state is agreed on that no honest island computed");
  }
}

// Leases of what is undone are free again, and its states are no more.
void SimulatedDisk::save(const PersistRollback& back) {
  for (const auto& lease : leases_) {
    const auto first = lease.first;
    if (lease.second.first < back.to || used_up_.erase(first) == 0) continue;
    std::erase_if(committed_leases_, [&](const LeaseRange& range) { return range.first == first; });
  }
  memory_.committed = back.to;
  memory_.record_epoch = memory_.epoch = back.epoch;
  memory_.last_commit.reset();
  memory_.commits_before.clear();
  memory_.restored = false;
  memory_.spoiled.reset();
  attempts_.clear();
  memory_.agreed_hash = memory_.state_hashes.at(back.to);
  std::erase_if(memory_.state_hashes, [&](const auto& entry) { return entry.first > back.to; });
  std::erase_if(memory_.uploaded, [&](const HeldState& state) { return state.outer_step > back.to; });
}

void SimulatedDisk::save(const PersistFastForward& forth) {
  memory_.committed = OuterStep{forth.commit.round.value + 1};
  memory_.commits_before.clear();
  memory_.last_commit = forth.commit;
  memory_.record_epoch = forth.commit.epoch;
  memory_.agreed_hash.reset();
  memory_.spoiled.reset();
  attempts_.clear();
  for (const auto& [first, row] : leases_) {
    if (first < forth.commit.lease_cursor) used_up_.insert(first);
  }
  lease_floor_ = forth.commit.lease_cursor;
}

}  // namespace atl
