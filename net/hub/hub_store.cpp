#include "net/hub/hub_store.h"

#include <fmt/format.h>

#include <sstream>

namespace atl {
namespace {

constexpr int kSchemaVersion = 1;

constexpr const char* kTables = R"(
  CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS island (
    id TEXT PRIMARY KEY, display_name TEXT NOT NULL, key_sha256 TEXT NOT NULL UNIQUE,
    enrolled_at INTEGER NOT NULL, removed INTEGER NOT NULL DEFAULT 0);
  CREATE TABLE IF NOT EXISTS lease (
    first INTEGER PRIMARY KEY, sequences INTEGER NOT NULL, island TEXT NOT NULL, round INTEGER NOT NULL,
    committed INTEGER NOT NULL DEFAULT 0);
  CREATE TABLE IF NOT EXISTS round_commit (
    round INTEGER PRIMARY KEY, attempts INTEGER NOT NULL, members INTEGER NOT NULL, tokens INTEGER NOT NULL,
    seconds REAL NOT NULL, mean_loss_nats REAL NOT NULL, message TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS state_hash (outer_step INTEGER PRIMARY KEY, hash TEXT NOT NULL, unanimous INTEGER);
  CREATE TABLE IF NOT EXISTS validation (outer_step INTEGER PRIMARY KEY, island TEXT NOT NULL, loss_nats REAL NOT NULL);
)";

}  // namespace

Result<std::unique_ptr<HubStore>> HubStore::open(const std::filesystem::path& path) {
  ATOLL_ASSIGN_OR_RETURN(Database database, Database::open(path));
  std::unique_ptr<HubStore> store(new HubStore(std::move(database)));
  ATOLL_RETURN_IF_ERROR(store->make_tables());
  return store;
}

Status HubStore::make_tables() {
  ATOLL_ASSIGN_OR_RETURN(Statement version, database_.prepare("PRAGMA user_version"));
  ATOLL_ASSIGN_OR_RETURN(const bool row, version.step());
  const std::int64_t found = row ? version.integer(0) : 0;
  version.reset();
  if (found > kSchemaVersion) {
    return Error{
        ErrorCode::kVersionUnsupported,
        fmt::format("the hub's database is of version {}, this atoll knows {}; update atoll", found, kSchemaVersion)};
  }
  if (found == kSchemaVersion) return ok_status();
  ATOLL_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(database_));
  ATOLL_RETURN_IF_ERROR(database_.exec(kTables));
  ATOLL_RETURN_IF_ERROR(database_.exec(fmt::format("PRAGMA user_version = {}", kSchemaVersion)));
  return transaction.commit();
}

// ---- facts

Status HubStore::set(const std::string& key, const std::string& value) {
  ATOLL_ASSIGN_OR_RETURN(Statement statement, database_.prepare("INSERT OR REPLACE INTO fact VALUES (?, ?)"));
  ATOLL_RETURN_IF_ERROR(statement.bind(key, value));
  return statement.run();
}

Result<std::optional<std::string>> HubStore::get(const std::string& key) {
  ATOLL_ASSIGN_OR_RETURN(Statement statement, database_.prepare("SELECT value FROM fact WHERE name = ?"));
  ATOLL_RETURN_IF_ERROR(statement.bind(key));
  ATOLL_ASSIGN_OR_RETURN(const bool row, statement.step());
  if (!row) return std::optional<std::string>();
  return std::optional(statement.text(0));
}

Status HubStore::save_addresses(const std::vector<Address>& addresses) {
  std::string lines;
  for (const Address& address : addresses) lines += to_string(address) + "\n";
  return set("addresses", lines);
}

Result<std::vector<Address>> HubStore::addresses() {
  ATOLL_ASSIGN_OR_RETURN(const std::optional<std::string> lines, get("addresses"));
  std::vector<Address> addresses;
  std::istringstream stream(lines.value_or(""));
  for (std::string line; std::getline(stream, line);) {
    ATOLL_ASSIGN_OR_RETURN(Address address, parse_address(line));
    addresses.push_back(std::move(address));
  }
  return addresses;
}

// ---- islands

Status HubStore::add_island(const EnrolledIsland& island) {
  ATOLL_ASSIGN_OR_RETURN(
      Statement statement,
      database_.prepare("INSERT INTO island (id, display_name, key_sha256, enrolled_at) VALUES (?, ?, ?, ?)"));
  ATOLL_RETURN_IF_ERROR(statement.bind(island.id.value, island.display_name, island.key_sha256,
                                       island.enrolled_at.time_since_epoch().count()));
  return statement.run();
}

Result<std::optional<EnrolledIsland>> HubStore::find_island(const std::string& key_sha256) {
  ATOLL_ASSIGN_OR_RETURN(Statement statement,
                         database_.prepare("SELECT id, display_name, key_sha256, enrolled_at FROM island "
                                           "WHERE key_sha256 = ? AND removed = 0"));
  ATOLL_RETURN_IF_ERROR(statement.bind(key_sha256));
  ATOLL_ASSIGN_OR_RETURN(const bool row, statement.step());
  if (!row) return std::optional<EnrolledIsland>();
  return std::optional(EnrolledIsland{IslandId{statement.text(0)}, statement.text(1), statement.text(2),
                                      std::chrono::sys_seconds(std::chrono::seconds(statement.integer(3))), false});
}

Result<std::vector<EnrolledIsland>> HubStore::islands() {
  ATOLL_ASSIGN_OR_RETURN(Statement statement,
                         database_.prepare("SELECT id, display_name, key_sha256, enrolled_at, removed FROM "
                                           "island ORDER BY enrolled_at, id"));
  std::vector<EnrolledIsland> islands;
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const bool row, statement.step());
    if (!row) return islands;
    islands.push_back({IslandId{statement.text(0)}, statement.text(1), statement.text(2),
                       std::chrono::sys_seconds(std::chrono::seconds(statement.integer(3))),
                       statement.integer(4) != 0});
  }
}

Status HubStore::remove_island(const IslandId& id) {
  ATOLL_ASSIGN_OR_RETURN(Statement statement, database_.prepare("UPDATE island SET removed = 1 WHERE id = ?"));
  ATOLL_RETURN_IF_ERROR(statement.bind(id.value));
  ATOLL_RETURN_IF_ERROR(statement.run());
  if (database_.changed_rows() > 0) return ok_status();
  return Error{ErrorCode::kNotFound, fmt::format("no island {} has enrolled; see: atoll hub islands", id.value)};
}

// ---- what the coordinator persists

Status HubStore::save(const PersistLeases& leases) {
  ATOLL_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(database_));
  ATOLL_ASSIGN_OR_RETURN(
      Statement statement,
      database_.prepare("INSERT OR REPLACE INTO lease (first, sequences, island, round) VALUES (?, ?, ?, ?)"));
  for (const IslandLease& lease : leases.leases) {
    ATOLL_RETURN_IF_ERROR(
        statement.bind(lease.range.first, lease.range.sequences, lease.island.value, leases.round.value));
    ATOLL_RETURN_IF_ERROR(statement.run());
  }
  return transaction.commit();
}

Status HubStore::save(const PersistAttempt& attempt) {
  return set("last_attempt", fmt::format("{} {}", attempt.round.value, attempt.attempt.value));
}

Status HubStore::save(const PersistCommit& commit) {
  std::uint64_t tokens = 0;
  for (const AttemptMember& member : commit.commit.members) tokens += member.tokens;
  ATOLL_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(database_));
  // Not OR REPLACE: a round is committed once.
  ATOLL_ASSIGN_OR_RETURN(Statement statement,
                         database_.prepare("INSERT INTO round_commit VALUES (?, ?, ?, ?, ?, ?, ?)"));
  ATOLL_RETURN_IF_ERROR(statement.bind(commit.commit.round.value, commit.commit.attempt.value,
                                       commit.commit.members.size(), tokens, commit.seconds, commit.mean_loss_nats,
                                       encode(HubMessage(commit.commit))));
  ATOLL_RETURN_IF_ERROR(statement.run());
  ATOLL_ASSIGN_OR_RETURN(Statement lease, database_.prepare("UPDATE lease SET committed = 1 WHERE first = ?"));
  for (const LeaseRange& range : commit.leases) {
    ATOLL_RETURN_IF_ERROR(lease.bind(range.first));
    ATOLL_RETURN_IF_ERROR(lease.run());
  }
  return transaction.commit();
}

Status HubStore::save(const PersistStateHash& hash) {
  ATOLL_ASSIGN_OR_RETURN(Statement statement, database_.prepare("INSERT OR REPLACE INTO state_hash VALUES (?, ?, ?)"));
  ATOLL_RETURN_IF_ERROR(statement.bind(hash.outer_step.value, hash.state_hash, hash.unanimous));
  return statement.run();
}

Status HubStore::save(const IslandValidated& validation) {
  ATOLL_ASSIGN_OR_RETURN(Statement statement, database_.prepare("INSERT OR REPLACE INTO validation VALUES (?, ?, ?)"));
  ATOLL_RETURN_IF_ERROR(statement.bind(validation.outer_step.value, validation.island.value, validation.loss_nats));
  return statement.run();
}

// ---- what a restarted hub reads

Result<std::optional<HubCommit>> HubStore::last_commit() {
  ATOLL_ASSIGN_OR_RETURN(Statement statement,
                         database_.prepare("SELECT message FROM round_commit ORDER BY round DESC LIMIT 1"));
  ATOLL_ASSIGN_OR_RETURN(const bool row, statement.step());
  if (!row) return std::optional<HubCommit>();
  ATOLL_ASSIGN_OR_RETURN(const HubMessage message, decode_hub_message(statement.text(0)));
  const auto* commit = std::get_if<HubCommit>(&message);
  if (commit == nullptr) return Error{ErrorCode::kCorrupt, "the hub's database holds a commit that is none"};
  return std::optional(*commit);
}

Status HubStore::read_leases(CoordinatorMemory& memory) {
  ATOLL_ASSIGN_OR_RETURN(Statement cursor, database_.prepare("SELECT max(first + sequences) FROM lease"));
  ATOLL_ASSIGN_OR_RETURN(bool row, cursor.step());
  if (row) memory.lease_cursor = static_cast<std::uint64_t>(cursor.integer(0));
  ATOLL_ASSIGN_OR_RETURN(Statement leases, database_.prepare("SELECT first, sequences, island, round FROM lease "
                                                             "WHERE committed = 0 ORDER BY first"));
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(row, leases.step());
    if (!row) return ok_status();
    const LeaseRange range{static_cast<std::uint64_t>(leases.integer(0)),
                           static_cast<std::uint64_t>(leases.integer(1))};
    if (leases.integer(3) == memory.committed.value) {
      memory.open_leases.push_back({IslandId{leases.text(2)}, range});
    } else {
      memory.returned_leases.push_back(range);
    }
  }
}

Result<CoordinatorMemory> HubStore::memory() {
  CoordinatorMemory memory;
  ATOLL_ASSIGN_OR_RETURN(memory.last_commit, last_commit());
  if (memory.last_commit) memory.committed = OuterStep{memory.last_commit->round.value + 1};
  ATOLL_RETURN_IF_ERROR(read_leases(memory));
  ATOLL_ASSIGN_OR_RETURN(const std::optional<std::string> attempt, get("last_attempt"));
  std::istringstream words(attempt.value_or(""));
  std::uint32_t round = 0, number = 0;
  if (words >> round >> number && round == memory.committed.value) memory.last_attempt = Attempt{number};
  ATOLL_ASSIGN_OR_RETURN(Statement hash, database_.prepare("SELECT hash FROM state_hash WHERE outer_step = ?"));
  ATOLL_RETURN_IF_ERROR(hash.bind(memory.committed.value));
  ATOLL_ASSIGN_OR_RETURN(const bool row, hash.step());
  if (row) memory.agreed_hash = hash.text(0);
  return memory;
}

Result<std::vector<HubState::Round>> HubStore::rounds(std::size_t limit) {
  ATOLL_ASSIGN_OR_RETURN(
      Statement statement,
      database_.prepare("SELECT round, attempts, members, tokens, seconds, mean_loss_nats, unanimous "
                        "FROM round_commit LEFT JOIN state_hash ON outer_step = round + 1 "
                        "ORDER BY round DESC LIMIT ?"));
  ATOLL_RETURN_IF_ERROR(statement.bind(limit));
  std::vector<HubState::Round> rounds;
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const bool row, statement.step());
    if (!row) break;
    HubState::Round& round = rounds.emplace_back();
    round.round = static_cast<std::uint32_t>(statement.integer(0));
    round.attempts = static_cast<std::uint32_t>(statement.integer(1));
    round.members = static_cast<std::uint32_t>(statement.integer(2));
    round.tokens = static_cast<std::uint64_t>(statement.integer(3));
    round.seconds = statement.real(4);
    round.mean_loss_nats = statement.real(5);
    if (!statement.is_null(6)) round.outer_hashes_equal = statement.integer(6) != 0;
  }
  return std::vector<HubState::Round>(rounds.rbegin(), rounds.rend());
}

Result<std::optional<HubState::Validation>> HubStore::validation(bool first) {
  ATOLL_ASSIGN_OR_RETURN(Statement statement,
                         database_.prepare(fmt::format("SELECT outer_step, loss_nats FROM validation "
                                                       "ORDER BY outer_step {} LIMIT 1",
                                                       first ? "ASC" : "DESC")));
  ATOLL_ASSIGN_OR_RETURN(const bool row, statement.step());
  if (!row) return std::optional<HubState::Validation>();
  return std::optional(HubState::Validation{static_cast<std::uint32_t>(statement.integer(0)), statement.real(1)});
}

}  // namespace atl
