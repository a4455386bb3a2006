// What the hub must not forget: the roster of enrolled islands, leases, commits, state hashes. SQLite; every function
// that writes is on the disk when it returns. Used by the hub's thread; another process may make invites in the same
// file.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/base/address.h"
#include "net/base/sqlite.h"
#include "net/control/hub_state.h"
#include "net/mesh/coordinator_types.h"

namespace atl {

struct EnrolledIsland {
  IslandId id;
  std::string display_name;
  std::string key_sha256;  // hex
  std::chrono::sys_seconds enrolled_at;
  bool removed = false;
};

class HubStore {
 public:
  // Makes the tables when they are not there. kVersionUnsupported for a file of a newer version.
  static Result<std::unique_ptr<HubStore>> open(const std::filesystem::path& path);

  Database& database() { return database_; }  // for the invites, which live in the same file

  Status add_island(const EnrolledIsland& island);
  Result<std::optional<EnrolledIsland>> find_island(const std::string& key_sha256);  // not the removed ones

  Result<std::vector<EnrolledIsland>> islands();  // all that ever enrolled, oldest first
  // Its certificate is not admitted again. kNotFound when there is none of that id.
  Status remove_island(const IslandId& id);

  Status save_addresses(const std::vector<Address>& addresses);  // where it last served
  Result<std::vector<Address>> addresses();

  Status save(const PersistLeases& leases);
  Status save(const PersistAttempt& attempt);
  Status save(const PersistCommit& commit);
  Status save(const PersistStateHash& hash);
  Status save(const IslandValidated& validation);

  // Where a hub that starts goes on.
  Result<CoordinatorMemory> memory();
  // The last `limit` commits, oldest first.
  Result<std::vector<HubState::Round>> rounds(std::size_t limit);
  Result<std::optional<HubState::Validation>> validation(bool first);  // the first or the last

 private:
  explicit HubStore(Database database) : database_(std::move(database)) {}
  Status make_tables();
  Status set(const std::string& key, const std::string& value);
  Result<std::optional<std::string>> get(const std::string& key);
  Result<std::optional<HubCommit>> last_commit();
  Status read_leases(CoordinatorMemory& memory);

  Database database_;
};

}  // namespace atl
