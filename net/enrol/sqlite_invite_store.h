// The hub's invites in its database (table `invite`). One thread at a time, as the Database; other processes may use
// the same file.
#pragma once

#include "net/base/sqlite.h"
#include "net/enrol/invite_store.h"

namespace atl {

class SqliteInviteStore : public InviteStore {
 public:
  // Makes the table when it is not there. `database` outlives the store.
  static Result<SqliteInviteStore> open(Database& database);

  Status create(const InviteRecord& invite) override;
  Status burn(const std::string& id, ByteView secret, std::chrono::sys_seconds now) override;
  Result<std::vector<InviteRecord>> list() override;

 private:
  explicit SqliteInviteStore(Database& database) : database_(&database) {}
  Result<InviteRecord> find(const std::string& id);
  Database* database_;
};

}  // namespace atl
