#include "net/enrol/enrolment_store.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>

namespace atl {
namespace {

// A number of invites that no person makes, so that a list stays bounded.
constexpr std::int64_t kMaxListed = 10'000;

constexpr const char* kTables = R"(
  CREATE TABLE IF NOT EXISTS invite (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, secret_sha256 BLOB NOT NULL,
    uses_left INTEGER NOT NULL CHECK (uses_left >= 0), expires INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS island (
    id TEXT PRIMARY KEY, display_name TEXT NOT NULL, key_sha256 TEXT NOT NULL UNIQUE,
    enrolled_at INTEGER NOT NULL, removed INTEGER NOT NULL DEFAULT 0);
)";
// The id of the invite by which it came; empty: it came before that was written down.
constexpr const char* kInviteOfIsland = "ALTER TABLE island ADD COLUMN invite TEXT NOT NULL DEFAULT ''";

InviteRecord invite_at(const Statement& row) {
  InviteRecord invite;
  invite.id = row.text(0);
  const Bytes secret = row.blob(1);
  std::ranges::copy(std::span(secret).first(std::min(secret.size(), invite.secret_sha256.size())),
                    invite.secret_sha256.begin());
  invite.uses_left = static_cast<std::uint32_t>(row.integer(2));
  invite.expires = std::chrono::sys_seconds(std::chrono::seconds(row.integer(3)));
  return invite;
}

EnrolledIsland island_at(const Statement& row) {
  return {IslandId{row.text(0)}, row.text(1), row.text(2),
          std::chrono::sys_seconds(std::chrono::seconds(row.integer(3))), row.integer(4) != 0};
}

bool is_secret_of(const InviteRecord& invite, ByteView secret) {
  const Digest shown = sha256(secret);
  return CRYPTO_memcmp(shown.data(), invite.secret_sha256.data(), shown.size()) == 0;
}

EnrolOutcome refused(ErrorCode code, std::string message) { return {{}, Error{code, std::move(message)}}; }

EnrolOutcome is_over(const InviteRecord& invite) {
  return refused(ErrorCode::kInviteExpired, invite.revoked()
                                                ? "this invite was taken back by the run's operator; ask for a new one"
                                                : "this invite has expired; ask for a new one");
}

}  // namespace

Result<EnrolmentStore> EnrolmentStore::open(Database& database) {
  EnrolmentStore store(database);
  ATOLL_RETURN_IF_ERROR(store.make_tables());
  return store;
}

Result<bool> EnrolmentStore::has_tables() {
  ATOLL_ASSIGN_OR_RETURN(Statement columns,
                         database_->prepare("SELECT count(*) FROM pragma_table_info('island') WHERE name = 'invite'"));
  ATOLL_ASSIGN_OR_RETURN(const bool row, columns.step());
  return row && columns.integer(0) > 0;
}

Status EnrolmentStore::make_tables() {
  ATOLL_ASSIGN_OR_RETURN(bool there, has_tables());
  if (there) return ok_status();
  ATOLL_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(*database_));
  ATOLL_ASSIGN_OR_RETURN(there, has_tables());  // another process may have been first
  if (there) return ok_status();
  ATOLL_RETURN_IF_ERROR(database_->exec(kTables));
  ATOLL_RETURN_IF_ERROR(database_->exec(kInviteOfIsland));
  return transaction.commit();
}

// ---- invites

Status EnrolmentStore::create(const InviteRecord& invite) {
  ATOLL_ASSIGN_OR_RETURN(
      Statement insert,
      database_->prepare("INSERT INTO invite (id, secret_sha256, uses_left, expires) VALUES (?, ?, ?, ?)"));
  ATOLL_RETURN_IF_ERROR(insert.bind(invite.id, ByteView(invite.secret_sha256), invite.uses_left,
                                    invite.expires.time_since_epoch().count()));
  return insert.run();
}

Result<std::optional<InviteRecord>> EnrolmentStore::find_invite(const std::string& id) {
  ATOLL_ASSIGN_OR_RETURN(Statement select,
                         database_->prepare("SELECT id, secret_sha256, uses_left, expires FROM invite WHERE id = ?"));
  ATOLL_RETURN_IF_ERROR(select.bind(id));
  ATOLL_ASSIGN_OR_RETURN(const bool found, select.step());
  return found ? std::optional(invite_at(select)) : std::nullopt;
}

Result<std::vector<InviteRecord>> EnrolmentStore::invites() {
  ATOLL_ASSIGN_OR_RETURN(
      Statement select,
      database_->prepare("SELECT id, secret_sha256, uses_left, expires FROM invite ORDER BY number DESC LIMIT ?"));
  ATOLL_RETURN_IF_ERROR(select.bind(kMaxListed));
  std::vector<InviteRecord> invites;
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const bool found, select.step());
    if (!found) return invites;
    invites.push_back(invite_at(select));
  }
}

Status EnrolmentStore::revoke(const std::string& invite_id) {
  ATOLL_ASSIGN_OR_RETURN(Statement update, database_->prepare("UPDATE invite SET expires = ? WHERE id = ?"));
  ATOLL_RETURN_IF_ERROR(update.bind(InviteRecord::kRevoked.time_since_epoch().count(), invite_id));
  ATOLL_RETURN_IF_ERROR(update.run());
  if (database_->changed_rows() > 0) return ok_status();
  return Error{ErrorCode::kNotFound, fmt::format("there is no invite {}; see: atoll hub invites", invite_id)};
}

// ---- enrolling

Result<EnrolOutcome> EnrolmentStore::enrol(const std::string& invite_id, ByteView secret,
                                           const EnrolledIsland& newcomer) {
  ATOLL_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(*database_));
  ATOLL_ASSIGN_OR_RETURN(const std::optional<InviteRecord> invite, find_invite(invite_id));
  // Only who knows the secret learns what became of the invite, and of the key.
  if (!invite || !is_secret_of(*invite, secret)) {
    return refused(ErrorCode::kInviteUnknown, "the hub does not know this invite; ask for a new one");
  }
  const bool over = invite->expires <= newcomer.enrolled_at;
  ATOLL_ASSIGN_OR_RETURN(const std::optional<Known> known, find_known(newcomer.key_sha256));
  if (known && known->removed) {
    return refused(ErrorCode::kConflict,
                   fmt::format("the island of this key, {}, was removed by the run's operator; ask them for a new "
                               "invite and join again, with a new key",
                               known->id.value));
  }
  if (known && known->invite != invite_id) {
    return refused(ErrorCode::kConflict,
                   fmt::format("this key is that of {}, which joined by another invite; go on with the identity that "
                               "it got, or make a new key: join from another directory",
                               known->id.value));
  }
  if (known) return over ? is_over(*invite) : EnrolOutcome{known->id, {}};
  if (invite->revoked()) return is_over(*invite);
  if (invite->uses_left == 0) {
    return refused(ErrorCode::kInviteUsed,
                   "this invite was used already, by as many islands as it was for; ask for a new one");
  }
  if (over) return is_over(*invite);
  ATOLL_RETURN_IF_ERROR(enter(invite_id, newcomer));
  ATOLL_RETURN_IF_ERROR(transaction.commit());
  return EnrolOutcome{newcomer.id, {}};
}

Result<std::optional<EnrolmentStore::Known>> EnrolmentStore::find_known(const std::string& key_sha256) {
  ATOLL_ASSIGN_OR_RETURN(Statement select,
                         database_->prepare("SELECT id, invite, removed FROM island WHERE key_sha256 = ?"));
  ATOLL_RETURN_IF_ERROR(select.bind(key_sha256));
  ATOLL_ASSIGN_OR_RETURN(const bool found, select.step());
  if (!found) return std::optional<Known>();
  return std::optional(Known{IslandId{select.text(0)}, select.text(1), select.integer(2) != 0});
}

Status EnrolmentStore::enter(const std::string& invite, const EnrolledIsland& newcomer) {
  ATOLL_ASSIGN_OR_RETURN(Statement take,
                         database_->prepare("UPDATE invite SET uses_left = uses_left - 1 WHERE id = ?"));
  ATOLL_RETURN_IF_ERROR(take.bind(invite));
  ATOLL_RETURN_IF_ERROR(take.run());
  ATOLL_ASSIGN_OR_RETURN(Statement insert,
                         database_->prepare("INSERT INTO island (id, display_name, key_sha256, enrolled_at, invite) "
                                            "VALUES (?, ?, ?, ?, ?)"));
  ATOLL_RETURN_IF_ERROR(insert.bind(newcomer.id.value, newcomer.display_name, newcomer.key_sha256,
                                    newcomer.enrolled_at.time_since_epoch().count(), invite));
  return insert.run();
}

// ---- islands

Result<std::optional<EnrolledIsland>> EnrolmentStore::find_island(const std::string& key_sha256) {
  ATOLL_ASSIGN_OR_RETURN(Statement select,
                         database_->prepare("SELECT id, display_name, key_sha256, enrolled_at, removed FROM island "
                                            "WHERE key_sha256 = ? AND removed = 0"));
  ATOLL_RETURN_IF_ERROR(select.bind(key_sha256));
  ATOLL_ASSIGN_OR_RETURN(const bool found, select.step());
  return found ? std::optional(island_at(select)) : std::nullopt;
}

Result<std::vector<EnrolledIsland>> EnrolmentStore::islands() {
  ATOLL_ASSIGN_OR_RETURN(Statement select,
                         database_->prepare("SELECT id, display_name, key_sha256, enrolled_at, removed FROM island "
                                            "ORDER BY enrolled_at, id"));
  std::vector<EnrolledIsland> islands;
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const bool found, select.step());
    if (!found) return islands;
    islands.push_back(island_at(select));
  }
}

Status EnrolmentStore::rename_island(const IslandId& id, const std::string& display_name) {
  ATOLL_ASSIGN_OR_RETURN(Statement update, database_->prepare("UPDATE island SET display_name = ? WHERE id = ?"));
  ATOLL_RETURN_IF_ERROR(update.bind(display_name, id.value));
  return update.run();
}

Status EnrolmentStore::remove_island(const IslandId& id) {
  ATOLL_ASSIGN_OR_RETURN(Statement update, database_->prepare("UPDATE island SET removed = 1 WHERE id = ?"));
  ATOLL_RETURN_IF_ERROR(update.bind(id.value));
  ATOLL_RETURN_IF_ERROR(update.run());
  if (database_->changed_rows() > 0) return ok_status();
  return Error{ErrorCode::kNotFound, fmt::format("no island {} has enrolled; see: atoll hub islands", id.value)};
}

}  // namespace atl
