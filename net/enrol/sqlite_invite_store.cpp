#include "net/enrol/sqlite_invite_store.h"

#include <openssl/crypto.h>

#include <algorithm>

namespace atl {
namespace {

// A number of invites that no person makes, so that a list stays bounded.
constexpr std::int64_t kMaxListed = 10'000;

InviteRecord record_at(const Statement& row) {
  InviteRecord invite;
  invite.id = row.text(0);
  const Bytes secret = row.blob(1);
  std::ranges::copy(std::span(secret).first(std::min(secret.size(), invite.secret_sha256.size())),
                    invite.secret_sha256.begin());
  invite.uses_left = static_cast<std::uint32_t>(row.integer(2));
  invite.expires = std::chrono::sys_seconds(std::chrono::seconds(row.integer(3)));
  return invite;
}

}  // namespace

Result<SqliteInviteStore> SqliteInviteStore::open(Database& database) {
  ATOLL_RETURN_IF_ERROR(database.exec(
      "CREATE TABLE IF NOT EXISTS invite (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL,"
      " secret_sha256 BLOB NOT NULL, uses_left INTEGER NOT NULL CHECK (uses_left >= 0),"
      " expires INTEGER NOT NULL)"));
  return SqliteInviteStore(database);
}

Status SqliteInviteStore::create(const InviteRecord& invite) {
  ATOLL_ASSIGN_OR_RETURN(
      Statement insert,
      database_->prepare("INSERT INTO invite (id, secret_sha256, uses_left, expires) VALUES (?, ?, ?, ?)"));
  ATOLL_RETURN_IF_ERROR(insert.bind(invite.id, ByteView(invite.secret_sha256), invite.uses_left,
                                    invite.expires.time_since_epoch().count()));
  return insert.run();
}

Result<InviteRecord> SqliteInviteStore::find(const std::string& id) {
  ATOLL_ASSIGN_OR_RETURN(Statement select,
                         database_->prepare("SELECT id, secret_sha256, uses_left, expires FROM invite WHERE id = ?"));
  ATOLL_RETURN_IF_ERROR(select.bind(id));
  ATOLL_ASSIGN_OR_RETURN(const bool found, select.step());
  if (!found) return Error{ErrorCode::kInviteUnknown, ""};
  return record_at(select);
}

Status SqliteInviteStore::burn(const std::string& id, ByteView secret, std::chrono::sys_seconds now) {
  const Error unknown{ErrorCode::kInviteUnknown, "the hub does not know this invite; ask for a new one"};
  ATOLL_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(*database_));
  const Result<InviteRecord> invite = find(id);
  if (!invite.ok()) return invite.error().code == ErrorCode::kInviteUnknown ? unknown : invite.error();
  const Digest shown = sha256(secret);
  if (CRYPTO_memcmp(shown.data(), invite->secret_sha256.data(), shown.size()) != 0) return unknown;
  // Only who knows the secret learns what became of the invite.
  if (invite->uses_left == 0) {
    return Error{ErrorCode::kInviteUsed,
                 "this invite was used already, by as many islands as it was for; ask for a new one"};
  }
  if (invite->expires <= now) return Error{ErrorCode::kInviteExpired, "this invite has expired; ask for a new one"};
  ATOLL_ASSIGN_OR_RETURN(Statement take,
                         database_->prepare("UPDATE invite SET uses_left = uses_left - 1 WHERE id = ?"));
  ATOLL_RETURN_IF_ERROR(take.bind(id));
  ATOLL_RETURN_IF_ERROR(take.run());
  return transaction.commit();
}

Result<std::vector<InviteRecord>> SqliteInviteStore::list() {
  ATOLL_ASSIGN_OR_RETURN(
      Statement select,
      database_->prepare("SELECT id, secret_sha256, uses_left, expires FROM invite ORDER BY number DESC LIMIT ?"));
  ATOLL_RETURN_IF_ERROR(select.bind(kMaxListed));
  std::vector<InviteRecord> invites;
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const bool found, select.step());
    if (!found) return invites;
    invites.push_back(record_at(select));
  }
}

}  // namespace atl
