// What the hub of a SimulatedMesh wrote to its disk, as net/hub/hub_store does; and what must hold of it, whatever
// happens. One thread.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "net/mesh/coordinator_types.h"
#include "tests/net/mesh/simulated_island.h"

namespace atl {

class SimulatedDisk {
 public:
  // `world` outlives it, and hears of rules that are broken.
  explicit SimulatedDisk(SimulatedWorld& world);

  CoordinatorMemory start();  // what a hub that starts now finds, in a later epoch
  RollBack decide_rollback(OuterStep to, bool automatic);
  SimulatedDisk back_up() const { return *this; }
  void restore(const SimulatedDisk& backup);
  void remove(const IslandId& island) { memory_.removed.insert(island); }

  void save(const PersistLeases& leases);
  void save(const PersistAttempt& attempt);
  void save(const PersistCommit& commit);
  void save(const PersistStateHash& hash);
  void save(const PersistRollback& back);
  void save(const PersistFastForward& forth);
  void save(const PersistSpoiled& spoiled) { memory_.spoiled = spoiled.state; }
  void save(const PersistDecay& decided) { memory_.decay = decided.decay; }
  void save(const PersistMixture& decided) { memory_.mixture = decided.mixture; }
  void save(const PersistUploaded& uploaded) { memory_.uploaded.push_back(uploaded.state); }

  OuterStep committed() const { return memory_.committed; }
  bool is_commit_of_late(const HubCommit& commit) const;
  const std::vector<LeaseRange>& committed_leases() const { return committed_leases_; }

 private:
  SimulatedWorld* world_;
  CoordinatorMemory memory_;
  std::map<std::uint64_t, std::pair<OuterStep, IslandLease>> leases_;  // by first position, with the round
  std::set<std::uint64_t> used_up_;                                    // first positions
  std::uint64_t lease_floor_ = 0;
  std::map<OuterStep, Attempt> attempts_;  // the last of each round
  std::vector<LeaseRange> committed_leases_;
};

}  // namespace atl
