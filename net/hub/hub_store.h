// What the hub must not forget: the roster of enrolled islands, leases, commits, state hashes. SQLite; every function
// that writes is on the disk when it returns. Used by the hub's thread; another process may make invites and remove
// islands in the same file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/base/address.h"
#include "net/base/sqlite.h"
#include "net/control/hub_state.h"
#include "net/enrol/enrolment_store.h"
#include "net/hub/run_past.h"
#include "net/mesh/coordinator_types.h"
#include "net/wire/contributors.h"

namespace atl {

class HubStore {
 public:
  // Makes the tables when they are not there. kVersionUnsupported for a file of a newer version.
  static Result<std::unique_ptr<HubStore>> open(const std::filesystem::path& path);

  EnrolmentStore& enrolments() { return *enrolments_; }  // in the same file

  // Whether another process has written to the file since this was last asked; true when it is first asked.
  Result<bool> changed_by_others();
  void expect_changes() { seen_version_.reset(); }  // the next answer is true: what had changed could not be read

  Status save_addresses(const std::vector<Address>& addresses);  // where it last served
  Result<std::vector<Address>> addresses();

  // From which host each island came last.
  Status save_hosts(const std::map<IslandId, std::string>& hosts);
  Result<std::map<IslandId, std::string>> hosts();

  Status save(const PersistLeases& leases);
  Status save(const PersistAttempt& attempt);
  Status save(const PersistCommit& commit);
  Status save(const PersistStateHash& hash);
  Status save(const IslandValidated& validation);
  Status save(const StateEvaluated& evaluated);
  Status save(const PersistRollback& rollback, std::int64_t unix_seconds);
  Status save(const PersistFastForward& forward);
  Status save(const PersistSpoiled& spoiled);
  Status save(const PersistUploaded& uploaded);
  Status save(const PersistDecay& decided);
  Status save(const PersistMixture& decided);

  // The epoch in which this hub serves from now on: higher than any before, and than any that another copy of this home
  // was served in before now, if the clocks are right.
  Result<std::uint64_t> begin_epoch(std::int64_t unix_milliseconds);
  // Another hub of this run serves in that one: the next that begins here is higher.
  Status know_epoch(std::uint64_t epoch);
  // kNotFound when no hash of that outer state was agreed on.
  Result<std::string> state_hash(OuterStep outer_step);
  // Used up in rounds from this one on.
  Result<std::vector<LeaseRange>> leases_since(OuterStep round);

  // Where a hub that starts goes on.
  Result<CoordinatorMemory> memory();  // after begin_epoch()
  // The last `limit` commits, oldest first.
  Result<std::vector<HubState::Round>> rounds(std::size_t limit);
  Result<RunPast> past();                                              // all of them, and of the validations
  Result<std::optional<HubState::Validation>> validation(bool first);  // the first or the last
  // Of each state that was asked it, the figures of metrics_of(task.kind), in their order.
  Result<std::map<OuterStep, std::vector<double>>> evaluations(const EvaluationTask& task);
  // Who trained in rounds which count: those who agreed to be named, and the others as one (net/wire/contributors.h).
  Result<std::vector<Contributor>> contributors();
  // Of each island that trained in rounds which count: in how many.
  Result<std::map<IslandId, std::uint32_t>> accepted_rounds();
  // Whether an island's owner agreed to that. Nobody did who has not said so.
  Status save_credited(const IslandId& island, bool credited);

 private:
  explicit HubStore(Database database) : database_(std::move(database)) {}
  Status make_tables();
  Status set(const std::string& key, const std::string& value);
  Result<std::optional<std::string>> get(const std::string& key);
  Result<std::optional<ValidatedState>> spoiled();
  Result<std::uint64_t> number(const std::string& key);  // 0 when it is not there
  Status read_commits(CoordinatorMemory& memory);        // the newest
  Result<std::map<OuterStep, Attempt>> last_attempts();
  Status read_leases(CoordinatorMemory& memory);
  Status read_records(CoordinatorMemory& memory);
  Status undo_from(OuterStep round);
  Status count(const HubCommit& commit, int sign);  // 1, or -1: it counts no more
  Status count_from(OuterStep round, int sign);     // of that round and the later ones

  Database database_;
  std::optional<EnrolmentStore> enrolments_;  // uses database_
  std::optional<std::int64_t> seen_version_;
};

}  // namespace atl
