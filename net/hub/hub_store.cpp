#include "net/hub/hub_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

namespace atl {
namespace {

constexpr int kSchemaVersion = 4;
constexpr int kContributionVersion = 4;           // from which on they are counted
constexpr std::int64_t kStatesRemembered = 4096;  // agreed hashes, the newest
constexpr std::int64_t kValidationsRemembered = 3;

constexpr const char* kTables = R"(
  CREATE TABLE IF NOT EXISTS fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS lease (
    first INTEGER PRIMARY KEY, sequences INTEGER NOT NULL, island TEXT NOT NULL, round INTEGER NOT NULL,
    committed INTEGER NOT NULL DEFAULT 0);
  CREATE TABLE IF NOT EXISTS round_commit (
    round INTEGER PRIMARY KEY, attempts INTEGER NOT NULL, members INTEGER NOT NULL, tokens INTEGER NOT NULL,
    seconds REAL NOT NULL, mean_loss_nats REAL NOT NULL, message TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS state_hash (outer_step INTEGER PRIMARY KEY, hash TEXT NOT NULL, unanimous INTEGER);
  CREATE TABLE IF NOT EXISTS validation (outer_step INTEGER PRIMARY KEY, island TEXT NOT NULL, loss_nats REAL NOT NULL);
  CREATE TABLE IF NOT EXISTS evaluation (
    outer_step INTEGER NOT NULL, task TEXT NOT NULL, metric TEXT NOT NULL, value REAL NOT NULL,
    islands INTEGER NOT NULL, PRIMARY KEY (task, metric, outer_step)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS contribution (
    island TEXT PRIMARY KEY, rounds INTEGER NOT NULL, tokens INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS credited (island TEXT PRIMARY KEY) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS uploaded (outer_step INTEGER PRIMARY KEY, hash TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS rollback (
    epoch INTEGER PRIMARY KEY, outer_step INTEGER NOT NULL, reason TEXT NOT NULL, automatic INTEGER NOT NULL,
    at INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS undone_commit (number INTEGER PRIMARY KEY AUTOINCREMENT, message TEXT NOT NULL);
)";

}  // namespace

Result<std::unique_ptr<HubStore>> HubStore::open(const std::filesystem::path& path) {
  ATOLL_ASSIGN_OR_RETURN(Database database, Database::open(path));
  std::unique_ptr<HubStore> store(new HubStore(std::move(database)));
  ATOLL_RETURN_IF_ERROR(store->make_tables());
  ATOLL_ASSIGN_OR_RETURN(const EnrolmentStore enrolments, EnrolmentStore::open(store->database_));
  store->enrolments_.emplace(enrolments);
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
  if (found < kContributionVersion) ATOLL_RETURN_IF_ERROR(count_from(OuterStep{0}, 1));
  ATOLL_RETURN_IF_ERROR(database_.exec(fmt::format("PRAGMA user_version = {}", kSchemaVersion)));
  return transaction.commit();
}

Result<bool> HubStore::changed_by_others() {
  ATOLL_ASSIGN_OR_RETURN(Statement statement, database_.prepare("PRAGMA data_version"));
  ATOLL_ASSIGN_OR_RETURN(const bool row, statement.step());
  const std::int64_t version = row ? statement.integer(0) : 0;
  return std::exchange(seen_version_, version) != version;
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

Result<std::uint64_t> HubStore::number(const std::string& key) {
  ATOLL_ASSIGN_OR_RETURN(const std::optional<std::string> text, get(key));
  std::uint64_t value = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), value);
  return value;
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

// Of the rounds that may be open at once: "7 3 8 1" for attempt 3 of round 7 and attempt 1 of round 8.
Status HubStore::save(const PersistAttempt& attempt) {
  ATOLL_ASSIGN_OR_RETURN(auto attempts, last_attempts());
  std::erase_if(attempts, [&](const auto& entry) { return entry.first.value + kMaxFragments <= attempt.round.value; });
  attempts[attempt.round] = attempt.attempt;
  std::string words;
  for (const auto& [round, number] : attempts) {
    words += fmt::format("{}{} {}", words.empty() ? "" : " ", round.value, number.value);
  }
  return set("last_attempt", words);
}

Result<std::map<OuterStep, Attempt>> HubStore::last_attempts() {
  ATOLL_ASSIGN_OR_RETURN(const std::optional<std::string> text, get("last_attempt"));
  std::istringstream words(text.value_or(""));
  std::map<OuterStep, Attempt> attempts;
  for (std::uint32_t round = 0, number = 0; words >> round >> number;) attempts[OuterStep{round}] = Attempt{number};
  return attempts;
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
  ATOLL_RETURN_IF_ERROR(count(commit.commit, 1));
  ATOLL_ASSIGN_OR_RETURN(Statement lease, database_.prepare("UPDATE lease SET committed = 1 WHERE first = ?"));
  for (const LeaseRange& range : commit.leases) {
    ATOLL_RETURN_IF_ERROR(lease.bind(range.first));
    ATOLL_RETURN_IF_ERROR(lease.run());
  }
  ATOLL_RETURN_IF_ERROR(database_.exec("DELETE FROM fact WHERE name = 'restored'"));
  return transaction.commit();
}

// Commits from this round on are kept aside: they happened, and count no more.
Status HubStore::undo_from(OuterStep round) {
  ATOLL_RETURN_IF_ERROR(count_from(round, -1));
  for (const char* sql : {"INSERT INTO undone_commit (message) SELECT message FROM round_commit WHERE round >= ?",
                          "DELETE FROM round_commit WHERE round >= ?", "DELETE FROM state_hash WHERE outer_step > ?",
                          "DELETE FROM validation WHERE outer_step > ?", "DELETE FROM evaluation WHERE outer_step > ?",
                          "DELETE FROM uploaded WHERE outer_step > ?"}) {
    ATOLL_ASSIGN_OR_RETURN(Statement statement, database_.prepare(sql));
    ATOLL_RETURN_IF_ERROR(statement.bind(round.value));
    ATOLL_RETURN_IF_ERROR(statement.run());
  }
  return ok_status();
}

Status HubStore::save(const PersistRollback& rollback, std::int64_t unix_seconds) {
  ATOLL_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(database_));
  ATOLL_RETURN_IF_ERROR(undo_from(rollback.to));
  ATOLL_ASSIGN_OR_RETURN(Statement leases, database_.prepare("UPDATE lease SET committed = 0 WHERE round >= ?"));
  ATOLL_RETURN_IF_ERROR(leases.bind(rollback.to.value));
  ATOLL_RETURN_IF_ERROR(leases.run());
  ATOLL_ASSIGN_OR_RETURN(Statement record, database_.prepare("INSERT INTO rollback VALUES (?, ?, ?, ?, ?)"));
  ATOLL_RETURN_IF_ERROR(
      record.bind(rollback.epoch, rollback.to.value, rollback.reason, rollback.automatic, unix_seconds));
  ATOLL_RETURN_IF_ERROR(record.run());
  ATOLL_RETURN_IF_ERROR(set("epoch", std::to_string(rollback.epoch)));
  // Gone on with as it is: from then on its loss is the measure.
  ATOLL_ASSIGN_OR_RETURN(const std::optional<ValidatedState> spoiled, this->spoiled());
  if (spoiled && spoiled->outer_step <= rollback.to) {
    ATOLL_RETURN_IF_ERROR(set("measured_from", std::to_string(spoiled->outer_step.value)));
  }
  ATOLL_RETURN_IF_ERROR(database_.exec("DELETE FROM fact WHERE name IN ('spoiled', 'restored')"));
  ATOLL_RETURN_IF_ERROR(set("last_attempt", ""));
  return transaction.commit();
}

// Rounds that this disk does not know of have used up leases that it does not know of.
Status HubStore::save(const PersistFastForward& forward) {
  const HubCommit& commit = forward.commit;
  std::uint64_t tokens = 0;
  for (const AttemptMember& member : commit.members) tokens += member.tokens;
  ATOLL_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(database_));
  ATOLL_RETURN_IF_ERROR(undo_from(commit.round));
  ATOLL_ASSIGN_OR_RETURN(Statement statement,
                         database_.prepare("INSERT INTO round_commit VALUES (?, ?, ?, ?, 0, 0, ?)"));
  ATOLL_RETURN_IF_ERROR(statement.bind(commit.round.value, commit.attempt.value, commit.members.size(), tokens,
                                       encode(HubMessage(commit))));
  ATOLL_RETURN_IF_ERROR(statement.run());
  ATOLL_RETURN_IF_ERROR(count(commit, 1));
  ATOLL_ASSIGN_OR_RETURN(Statement leases, database_.prepare("UPDATE lease SET committed = 1 WHERE first < ?"));
  ATOLL_RETURN_IF_ERROR(leases.bind(commit.lease_cursor));
  ATOLL_RETURN_IF_ERROR(leases.run());
  ATOLL_RETURN_IF_ERROR(set("lease_floor", std::to_string(commit.lease_cursor)));
  ATOLL_RETURN_IF_ERROR(set("last_attempt", ""));
  ATOLL_RETURN_IF_ERROR(database_.exec("DELETE FROM fact WHERE name = 'spoiled'"));
  return transaction.commit();
}

Status HubStore::save_hosts(const std::map<IslandId, std::string>& hosts) {
  std::string lines;
  for (const auto& [island, host] : hosts) lines += island.value + " " + host + "\n";
  return set("hosts", lines);
}

Result<std::map<IslandId, std::string>> HubStore::hosts() {
  ATOLL_ASSIGN_OR_RETURN(const std::optional<std::string> lines, get("hosts"));
  std::map<IslandId, std::string> hosts;
  std::istringstream stream(lines.value_or(""));
  for (std::string island, host; stream >> island >> host;) hosts[IslandId{island}] = host;
  return hosts;
}

Status HubStore::know_epoch(std::uint64_t epoch) {
  ATOLL_ASSIGN_OR_RETURN(const std::uint64_t last, number("epoch"));
  return epoch > last ? set("epoch", std::to_string(epoch)) : ok_status();
}

Result<std::uint64_t> HubStore::begin_epoch(std::int64_t unix_milliseconds) {
  ATOLL_ASSIGN_OR_RETURN(const std::uint64_t last, number("epoch"));
  const std::uint64_t epoch =
      std::max(last + 1, static_cast<std::uint64_t>(std::max<std::int64_t>(0, unix_milliseconds)));
  ATOLL_RETURN_IF_ERROR(set("epoch", std::to_string(epoch)));
  return epoch;
}

Result<std::string> HubStore::state_hash(OuterStep outer_step) {
  ATOLL_ASSIGN_OR_RETURN(Statement hash, database_.prepare("SELECT hash FROM state_hash WHERE outer_step = ?"));
  ATOLL_RETURN_IF_ERROR(hash.bind(outer_step.value));
  ATOLL_ASSIGN_OR_RETURN(const bool row, hash.step());
  if (row) return hash.text(0);
  return Error{ErrorCode::kNotFound,
               fmt::format("the state after round {} is none that the run's islands agreed on; see: atoll hub status",
                           outer_step.value)};
}

Result<std::vector<LeaseRange>> HubStore::leases_since(OuterStep round) {
  ATOLL_ASSIGN_OR_RETURN(Statement leases,
                         database_.prepare("SELECT first, sequences FROM lease WHERE committed = 1 AND round >= ?"));
  ATOLL_RETURN_IF_ERROR(leases.bind(round.value));
  std::vector<LeaseRange> ranges;
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const bool row, leases.step());
    if (!row) return ranges;
    ranges.push_back({static_cast<std::uint64_t>(leases.integer(0)), static_cast<std::uint64_t>(leases.integer(1))});
  }
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

Status HubStore::save(const PersistUploaded& uploaded) {
  ATOLL_ASSIGN_OR_RETURN(Statement statement, database_.prepare("INSERT OR REPLACE INTO uploaded VALUES (?, ?)"));
  ATOLL_RETURN_IF_ERROR(statement.bind(uploaded.state.outer_step.value, uploaded.state.state_hash));
  return statement.run();
}

Status HubStore::save(const PersistDecay& decided) {
  return set("decay", decided.decay ? to_json(*decided.decay) : std::string());
}

Status HubStore::save(const PersistMixture& decided) { return set("mixture", to_json(decided.mixture)); }

Status HubStore::save(const PersistSpoiled& spoiled) {
  return set("spoiled", fmt::format("{} {}", spoiled.state.outer_step.value, spoiled.state.loss_nats));
}

Result<std::optional<ValidatedState>> HubStore::spoiled() {
  ATOLL_ASSIGN_OR_RETURN(const std::optional<std::string> text, get("spoiled"));
  std::istringstream words(text.value_or(""));
  ValidatedState state;
  if (words >> state.outer_step.value >> state.loss_nats) return std::optional(state);
  return std::optional<ValidatedState>();
}

// ---- what a restarted hub reads

Status HubStore::read_commits(CoordinatorMemory& memory) {
  ATOLL_ASSIGN_OR_RETURN(Statement statement,
                         database_.prepare("SELECT message FROM round_commit ORDER BY round DESC LIMIT ?"));
  ATOLL_RETURN_IF_ERROR(statement.bind(kCommitsRemembered));
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const bool row, statement.step());
    if (!row) return ok_status();
    ATOLL_ASSIGN_OR_RETURN(const HubMessage message, decode_hub_message(statement.text(0)));
    const auto* commit = std::get_if<HubCommit>(&message);
    if (commit == nullptr) return Error{ErrorCode::kCorrupt, "the hub's database holds a commit that is none"};
    if (memory.last_commit) {
      memory.commits_before.push_front(*commit);
    } else {
      memory.last_commit = *commit;
    }
  }
}

Status HubStore::read_leases(CoordinatorMemory& memory) {
  ATOLL_ASSIGN_OR_RETURN(Statement cursor, database_.prepare("SELECT max(first + sequences) FROM lease"));
  ATOLL_ASSIGN_OR_RETURN(bool row, cursor.step());
  if (row) memory.lease_cursor = static_cast<std::uint64_t>(cursor.integer(0));
  ATOLL_ASSIGN_OR_RETURN(const std::uint64_t least, number("lease_floor"));
  memory.lease_cursor = std::max(memory.lease_cursor, least);
  ATOLL_ASSIGN_OR_RETURN(Statement leases, database_.prepare("SELECT first, sequences, island, round FROM lease "
                                                             "WHERE committed = 0 ORDER BY first"));
  std::map<OuterStep, std::vector<IslandLease>> begun;
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(row, leases.step());
    if (!row) break;
    const LeaseRange range{static_cast<std::uint64_t>(leases.integer(0)),
                           static_cast<std::uint64_t>(leases.integer(1))};
    const OuterStep round{static_cast<std::uint32_t>(leases.integer(3))};
    if (round >= memory.committed) {
      begun[round].push_back({IslandId{leases.text(2)}, range});
    } else {
      memory.returned_leases.push_back(range);
    }
  }
  ATOLL_ASSIGN_OR_RETURN(auto attempts, last_attempts());
  for (auto& [round, given] : begun) memory.begun.push_back({round, std::move(given), attempts[round]});
  return ok_status();
}

Result<CoordinatorMemory> HubStore::memory() {
  CoordinatorMemory memory;
  ATOLL_RETURN_IF_ERROR(read_commits(memory));
  if (memory.last_commit) memory.committed = OuterStep{memory.last_commit->round.value + 1};
  ATOLL_RETURN_IF_ERROR(read_leases(memory));
  const Result<std::string> hash = state_hash(memory.committed);
  if (hash.ok()) memory.agreed_hash = *hash;
  if (!hash.ok() && hash.error().code != ErrorCode::kNotFound) return hash.error();
  ATOLL_RETURN_IF_ERROR(read_records(memory));
  return memory;
}

// Epochs, states and validations.
Status HubStore::read_records(CoordinatorMemory& memory) {
  ATOLL_ASSIGN_OR_RETURN(memory.epoch, number("epoch"));
  ATOLL_ASSIGN_OR_RETURN(const std::optional<std::string> restored, get("restored"));
  memory.restored = restored.has_value();
  if (memory.last_commit) memory.record_epoch = memory.last_commit->epoch;
  ATOLL_ASSIGN_OR_RETURN(Statement rollback, database_.prepare("SELECT max(epoch) FROM rollback"));
  ATOLL_ASSIGN_OR_RETURN(bool row, rollback.step());
  if (row) memory.record_epoch = std::max(memory.record_epoch, static_cast<std::uint64_t>(rollback.integer(0)));
  ATOLL_ASSIGN_OR_RETURN(
      Statement states,
      database_.prepare("SELECT outer_step, hash FROM state_hash WHERE outer_step = 0 OR outer_step > "
                        "(SELECT max(outer_step) FROM state_hash) - ?"));
  ATOLL_RETURN_IF_ERROR(states.bind(kStatesRemembered));
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(row, states.step());
    if (!row) break;
    memory.state_hashes[OuterStep{static_cast<std::uint32_t>(states.integer(0))}] = states.text(1);
  }
  ATOLL_ASSIGN_OR_RETURN(Statement validations,
                         database_.prepare("SELECT outer_step, loss_nats FROM (SELECT * FROM validation ORDER BY "
                                           "outer_step DESC LIMIT ?) ORDER BY outer_step"));
  ATOLL_RETURN_IF_ERROR(validations.bind(kValidationsRemembered));
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(row, validations.step());
    if (!row) break;
    memory.validations.push_back({OuterStep{static_cast<std::uint32_t>(validations.integer(0))}, validations.real(1)});
  }
  ATOLL_ASSIGN_OR_RETURN(Statement uploaded,
                         database_.prepare("SELECT outer_step, hash FROM uploaded ORDER BY outer_step"));
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(row, uploaded.step());
    if (!row) break;
    memory.uploaded.push_back({OuterStep{static_cast<std::uint32_t>(uploaded.integer(0))}, uploaded.text(1)});
  }
  ATOLL_ASSIGN_OR_RETURN(const std::optional<std::string> decay, get("decay"));
  if (decay && !decay->empty()) {
    ATOLL_ASSIGN_OR_RETURN(memory.decay, parse_decided_decay(*decay));
  }
  ATOLL_ASSIGN_OR_RETURN(const std::optional<std::string> mixture, get("mixture"));
  if (mixture && !mixture->empty()) {
    ATOLL_ASSIGN_OR_RETURN(memory.mixture, parse_run_mixture(*mixture));
  }
  ATOLL_ASSIGN_OR_RETURN(memory.spoiled, spoiled());
  ATOLL_ASSIGN_OR_RETURN(const std::uint64_t first, number("measured_from"));
  std::erase_if(memory.validations, [&](const ValidatedState& state) {
    return state.outer_step.value < first || (memory.spoiled && state.outer_step >= memory.spoiled->outer_step);
  });
  ATOLL_ASSIGN_OR_RETURN(Statement removed, database_.prepare("SELECT id FROM island WHERE removed = 1"));
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(row, removed.step());
    if (!row) return ok_status();
    memory.removed.insert(IslandId{removed.text(0)});
  }
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

Result<RunPast> HubStore::past() {
  RunPast past;
  ATOLL_ASSIGN_OR_RETURN(
      Statement rounds,
      database_.prepare("SELECT round, tokens, seconds, mean_loss_nats FROM round_commit ORDER BY round"));
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const bool row, rounds.step());
    if (!row) break;
    past.add(HubState::Past{.round = static_cast<std::uint32_t>(rounds.integer(0)),
                            .tokens = static_cast<std::uint64_t>(rounds.integer(1)),
                            .seconds = rounds.real(2),
                            .mean_loss_nats = rounds.real(3)});
  }
  ATOLL_ASSIGN_OR_RETURN(Statement losses, database_.prepare("SELECT outer_step, loss_nats FROM validation"));
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const bool row, losses.step());
    if (!row) return past;
    past.add(HubState::Validation{static_cast<std::uint32_t>(losses.integer(0)), losses.real(1)});
  }
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
