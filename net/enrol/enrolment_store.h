// Who may become an island and who became one, in the hub's database: the invites (never their secrets, only what
// recognises them) and the islands that enrolled by them. One thread at a time, as the Database; other processes may
// use the same file, to make invites and to remove islands.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/base/bytes.h"
#include "net/base/id.h"
#include "net/base/result.h"
#include "net/base/sha256.h"
#include "net/base/sqlite.h"

namespace atl {

struct InviteRecord {
  std::string id;
  Digest secret_sha256{};
  std::uint32_t uses_left = 1;
  std::chrono::sys_seconds expires;
  bool revoked() const { return expires == kRevoked; }

  static constexpr std::chrono::sys_seconds kRevoked{};  // as `expires`: taken back by the run's operator
};

struct EnrolledIsland {
  IslandId id;
  std::string display_name;
  std::string key_sha256;  // hex
  std::chrono::sys_seconds enrolled_at;
  bool removed = false;
};

struct EnrolOutcome {
  IslandId island;               // whose key it is from now on
  std::optional<Error> refusal;  // why it is nobody's, for who asked: kInviteUnknown (also for a wrong secret),
                                 // kInviteUsed, kInviteExpired; kConflict: this key will never enrol by this invite
};

class EnrolmentStore {
 public:
  // Makes the tables when they are not there, or are of before. `database` outlives the store.
  static Result<EnrolmentStore> open(Database& database);

  Status create(const InviteRecord& invite);
  Result<std::vector<InviteRecord>> invites();  // newest first
  // Nobody enrols by it from now on, nor gets an answer of before again; islands that came by it stay. kNotFound when
  // there is none of that id.
  Status revoke(const std::string& invite_id);

  // Takes one use of the invite and enters the newcomer, both or neither: of two that come with the last use, one gets
  // it. A key that came by the same invite before is the island that it was, and takes no other use. The time is that
  // of `newcomer`. An error is the database's.
  Result<EnrolOutcome> enrol(const std::string& invite, ByteView secret, const EnrolledIsland& newcomer);

  Result<std::optional<EnrolledIsland>> find_island(const std::string& key_sha256);  // not the removed ones
  Result<std::vector<EnrolledIsland>> islands();  // all that ever enrolled, oldest first
  // As it calls itself from now on.
  Status rename_island(const IslandId& id, const std::string& display_name);
  // Its certificate is not admitted again. kNotFound when there is none of that id.
  Status remove_island(const IslandId& id);

 private:
  struct Known {  // an island of a key
    IslandId id;
    std::string invite;
    bool removed = false;
  };
  explicit EnrolmentStore(Database& database) : database_(&database) {}
  Result<bool> has_tables();
  Status make_tables();
  Result<std::optional<InviteRecord>> find_invite(const std::string& id);
  Result<std::optional<Known>> find_known(const std::string& key_sha256);
  Status enter(const std::string& invite, const EnrolledIsland& newcomer);

  Database* database_;
};

}  // namespace atl
