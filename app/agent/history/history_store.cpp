#include "app/agent/history/history_store.h"
#include "net/base/new_file.h"
#include "net/base/unix_time.h"

#include <fmt/format.h>

#include <chrono>

namespace atl {
namespace {

constexpr int kSchemaVersion = 2;

constexpr const char* kTables = R"(
  CREATE TABLE IF NOT EXISTS run (id TEXT PRIMARY KEY, written INTEGER NOT NULL, earlier_tokens INTEGER, pid INTEGER,
    tokens INTEGER) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS round (
    run TEXT NOT NULL, round INTEGER NOT NULL, began REAL, ended REAL, loss_nats REAL, validation_loss_nats REAL,
    tokens INTEGER, bytes_sent INTEGER, inner_seconds REAL, sync_seconds REAL, islands INTEGER, accepted INTEGER,
    state_hash TEXT, PRIMARY KEY (run, round)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS phase (
    run TEXT NOT NULL, round INTEGER NOT NULL, attempt INTEGER NOT NULL, name TEXT NOT NULL, seconds REAL NOT NULL,
    bytes INTEGER NOT NULL, PRIMARY KEY (run, round, attempt, name)) WITHOUT ROWID;
  CREATE TABLE IF NOT EXISTS score (
    run TEXT NOT NULL, round INTEGER NOT NULL, task TEXT NOT NULL, metric TEXT NOT NULL, value REAL NOT NULL,
    PRIMARY KEY (run, round, task, metric));
  CREATE TABLE IF NOT EXISTS peer (
    run TEXT NOT NULL, island TEXT NOT NULL, name TEXT NOT NULL, address TEXT NOT NULL, state TEXT NOT NULL,
    last_change REAL NOT NULL, rtt_seconds REAL, bytes_per_second REAL, down_bytes_per_second REAL,
    version TEXT NOT NULL, region TEXT NOT NULL, retries INTEGER NOT NULL, PRIMARY KEY (run, island)) WITHOUT ROWID;
)";

constexpr const char* kWriteRound = R"(
  INSERT INTO round VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (run, round) DO UPDATE SET
    began = coalesce(excluded.began, began), ended = coalesce(excluded.ended, ended),
    loss_nats = coalesce(excluded.loss_nats, loss_nats),
    validation_loss_nats = coalesce(excluded.validation_loss_nats, validation_loss_nats),
    tokens = coalesce(excluded.tokens, tokens), bytes_sent = coalesce(excluded.bytes_sent, bytes_sent),
    inner_seconds = coalesce(excluded.inner_seconds, inner_seconds),
    sync_seconds = coalesce(excluded.sync_seconds, sync_seconds), islands = coalesce(excluded.islands, islands),
    accepted = coalesce(excluded.accepted, accepted), state_hash = coalesce(excluded.state_hash, state_hash))";

std::optional<double> real(const Statement& row, int column) {
  return row.is_null(column) ? std::optional<double>() : row.real(column);
}
template <class T>
std::optional<T> integer(const Statement& row, int column) {
  return row.is_null(column) ? std::optional<T>() : static_cast<T>(row.integer(column));
}

HistoryRound read_round(const Statement& row) {
  return {.round = static_cast<std::uint32_t>(row.integer(0)),
          .began = real(row, 1),
          .ended = real(row, 2),
          .loss_nats = real(row, 3),
          .validation_loss_nats = real(row, 4),
          .tokens = integer<std::uint64_t>(row, 5),
          .bytes_sent = integer<std::uint64_t>(row, 6),
          .inner_seconds = real(row, 7),
          .sync_seconds = real(row, 8),
          .islands = integer<std::uint32_t>(row, 9),
          .accepted = integer<bool>(row, 10),
          .state_hash = row.is_null(11) ? std::optional<std::string>() : row.text(11),
          .phases = {},
          .scores = {}};
}

}  // namespace

// ---- the file

Result<std::unique_ptr<HistoryStore>> HistoryStore::open(const std::filesystem::path& path, HistoryLimits limits) {
  std::unique_ptr<HistoryStore> store(new HistoryStore(path, limits));
  Status opened = store->open_file(/*read_only=*/false);
  if (!opened.ok() &&
      (opened.error().code == ErrorCode::kCorrupt || opened.error().code == ErrorCode::kVersionUnsupported)) {
    ATOLL_RETURN_IF_ERROR(store->set_aside(opened.error().message));
    opened = store->open_file(/*read_only=*/false);
  }
  if (!opened.ok()) return opened.error().with_context("the history");
  return store;
}

Result<std::unique_ptr<HistoryStore>> HistoryStore::open_to_read(const std::filesystem::path& path) {
  std::unique_ptr<HistoryStore> store(new HistoryStore(path, {}));
  ATOLL_RETURN_IF_ERROR(store->open_file(/*read_only=*/true));
  return store;
}

Status HistoryStore::open_file(bool read_only) {
  ATOLL_ASSIGN_OR_RETURN(Database database, Database::open(path_, {.read_only = read_only}));
  database_.emplace(std::move(database));
  ATOLL_ASSIGN_OR_RETURN(Statement version, database_->prepare("PRAGMA user_version"));
  ATOLL_ASSIGN_OR_RETURN(const bool row, version.step());
  const std::int64_t found = row ? version.integer(0) : 0;
  version.reset();
  if (found != kSchemaVersion && (found != 0 || read_only)) {
    return Error{
        found == 0 ? ErrorCode::kNotFound : ErrorCode::kVersionUnsupported,
        fmt::format("{} is a history of version {}, this program reads {}", path_.string(), found, kSchemaVersion)};
  }
  if (!read_only) {
    // A power cut may lose the last minute, but leaves the file whole: fsync at each write would keep disks awake.
    ATOLL_RETURN_IF_ERROR(database_->exec("PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 4194304"));
    // Reads what a scan of the tables needs: a damaged page is found now, not in the middle of a write.
    ATOLL_RETURN_IF_ERROR(database_->exec(kTables));
    ATOLL_RETURN_IF_ERROR(PastTable(*database_).make());
    ATOLL_ASSIGN_OR_RETURN(Statement check, database_->prepare("PRAGMA quick_check(1)"));
    ATOLL_ASSIGN_OR_RETURN(const bool answered, check.step());
    if (!answered || check.text(0) != "ok")
      return Error{ErrorCode::kCorrupt, fmt::format("{} is damaged", path_.string())};
    check.reset();
    ATOLL_RETURN_IF_ERROR(database_->exec(fmt::format("PRAGMA user_version = {}", kSchemaVersion)));
  }
  ATOLL_ASSIGN_OR_RETURN(PointTable points, PointTable::open(*database_, limits_.keep_points));
  points_.emplace(std::move(points));
  past_.emplace(*database_);
  return ok_status();
}

Status HistoryStore::set_aside(const std::string& why) {
  points_.reset();
  past_.reset();
  database_.reset();
  std::filesystem::path kept = path_;
  kept += fmt::format(".damaged-{}", unix_seconds_now());
  if (const Status renamed = rename_and_flush(path_, kept); !renamed.ok()) {
    return Error{ErrorCode::kIo, fmt::format("{} is damaged and cannot be renamed ({}); remove it by hand",
                                             path_.string(), renamed.error().message)};
  }
  std::error_code failed;
  for (const char* suffix : {"-wal", "-shm"}) std::filesystem::remove(path_.string() + suffix, failed);
  notice_ = fmt::format(
      "the history could not be read ({}); it was kept as {} and a new one begun. Training is not "
      "affected; remove the old file when it is of no use",
      why, kept.string());
  return ok_status();
}

// ---- writing

Status HistoryStore::write(const HistoryBatch& batch) {
  Status written = write_once(batch);
  if (written.ok() || written.error().code != ErrorCode::kCorrupt) return written;
  ATOLL_RETURN_IF_ERROR(set_aside(written.error().message));
  ATOLL_RETURN_IF_ERROR(open_file(/*read_only=*/false));
  return write_once(batch);
}

Status HistoryStore::write_once(const HistoryBatch& batch) {
  if (!database_) ATOLL_RETURN_IF_ERROR(open_file(/*read_only=*/false));
  Status status;
  {
    auto transaction = Transaction::begin(*database_);
    if (!transaction.ok()) return transaction.error();
    status = write_rows(batch);
    if (status.ok()) status = transaction->commit();
  }
  if (!status.ok() && status.error().code != ErrorCode::kCorrupt) (void)points_->recount();
  return status;
}

Status HistoryStore::write_rows(const HistoryBatch& batch) {
  const std::optional<HistoryTotals>& totals = batch.totals;
  ATOLL_ASSIGN_OR_RETURN(
      Statement run,
      database_->prepare("INSERT INTO run VALUES (?1, (SELECT coalesce(max(written), 0) + 1 FROM run), ?2, "
                         "?3, ?4) ON CONFLICT (id) DO UPDATE SET written = excluded.written, "
                         "earlier_tokens = coalesce(?2, earlier_tokens), pid = coalesce(?3, pid), "
                         "tokens = coalesce(?4, tokens)"));
  if (totals) {
    ATOLL_RETURN_IF_ERROR(run.bind(batch.run, totals->earlier_tokens, totals->pid, totals->tokens));
  } else {
    ATOLL_RETURN_IF_ERROR(run.bind(batch.run, std::nullopt, std::nullopt, std::nullopt));
  }
  ATOLL_RETURN_IF_ERROR(run.run());
  for (const HistoryPoint& point : batch.points) ATOLL_RETURN_IF_ERROR(points_->add(batch.run, point));
  for (const HistoryRound& round : batch.rounds) ATOLL_RETURN_IF_ERROR(write_round(batch.run, round));
  for (const HistoryPeer& peer : batch.peers) ATOLL_RETURN_IF_ERROR(write_peer(batch.run, peer));
  if (batch.past) ATOLL_RETURN_IF_ERROR(past_->write(batch.run, *batch.past));
  return bound(batch.run);
}

Status HistoryStore::write_round(const std::string& run, const HistoryRound& round) {
  ATOLL_ASSIGN_OR_RETURN(Statement insert, database_->prepare(kWriteRound));
  const std::optional<int> accepted = round.accepted ? std::optional<int>(*round.accepted ? 1 : 0) : std::nullopt;
  ATOLL_RETURN_IF_ERROR(insert.bind(run, round.round, round.began, round.ended, round.loss_nats,
                                    round.validation_loss_nats, round.tokens, round.bytes_sent, round.inner_seconds,
                                    round.sync_seconds, round.islands, accepted, round.state_hash));
  ATOLL_RETURN_IF_ERROR(insert.run());
  for (const HistoryPhase& phase : round.phases) {
    ATOLL_ASSIGN_OR_RETURN(Statement add, database_->prepare("INSERT OR REPLACE INTO phase VALUES (?, ?, ?, ?, ?, ?)"));
    ATOLL_RETURN_IF_ERROR(add.bind(run, round.round, phase.attempt, phase.name, phase.seconds, phase.bytes));
    ATOLL_RETURN_IF_ERROR(add.run());
  }
  for (const HistoryScore& score : round.scores) {
    ATOLL_ASSIGN_OR_RETURN(Statement add, database_->prepare("INSERT OR REPLACE INTO score VALUES (?, ?, ?, ?, ?)"));
    ATOLL_RETURN_IF_ERROR(add.bind(run, round.round, score.task, score.metric, score.value));
    ATOLL_RETURN_IF_ERROR(add.run());
  }
  if (!round.began) return ok_status();
  // Once a round is enough.
  for (const auto& [table, kept] : {std::pair{"round", limits_.max_rounds}, std::pair{"score", limits_.max_rounds},
                                    std::pair{"phase", limits_.max_rounds / 10}}) {
    ATOLL_ASSIGN_OR_RETURN(Statement forget,
                           database_->prepare(fmt::format("DELETE FROM {} WHERE run = ? AND round < ?", table)));
    ATOLL_RETURN_IF_ERROR(forget.bind(run, std::int64_t{round.round} - std::int64_t{kept}));
    ATOLL_RETURN_IF_ERROR(forget.run());
  }
  return ok_status();
}

Status HistoryStore::write_link(const std::string& run, const HistoryPeer& peer) {
  ATOLL_ASSIGN_OR_RETURN(
      Statement update,
      database_->prepare("UPDATE peer SET rtt_seconds = coalesce(?3, rtt_seconds), bytes_per_second = "
                         "coalesce(?4, bytes_per_second), down_bytes_per_second = coalesce(?5, down_bytes_per_second), "
                         "retries = retries + ?6 WHERE run = ?1 AND island = ?2"));
  ATOLL_RETURN_IF_ERROR(
      update.bind(run, peer.island, peer.rtt_seconds, peer.bytes_per_second, peer.down_bytes_per_second, peer.retries));
  return update.run();
}

Status HistoryStore::write_peer(const std::string& run, const HistoryPeer& peer) {
  if (peer.state.empty()) return write_link(run, peer);
  ATOLL_ASSIGN_OR_RETURN(
      Statement insert,
      database_->prepare("INSERT INTO peer VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run, island) DO "
                         "UPDATE SET name = excluded.name, address = excluded.address, state = excluded.state, "
                         "last_change = excluded.last_change, rtt_seconds = coalesce(excluded.rtt_seconds, "
                         "rtt_seconds), bytes_per_second = coalesce(excluded.bytes_per_second, bytes_per_second), "
                         "version = excluded.version, region = excluded.region"));
  ATOLL_RETURN_IF_ERROR(insert.bind(run, peer.island, peer.name, peer.address, peer.state, peer.last_change,
                                    peer.rtt_seconds, peer.bytes_per_second, peer.down_bytes_per_second, peer.version,
                                    peer.region, peer.retries));
  ATOLL_RETURN_IF_ERROR(insert.run());
  ATOLL_ASSIGN_OR_RETURN(Statement forget,
                         database_->prepare("DELETE FROM peer WHERE run = ?1 AND island IN (SELECT island FROM peer "
                                            "WHERE run = ?1 ORDER BY state = 'up' DESC, last_change DESC LIMIT -1 "
                                            "OFFSET ?2)"));
  ATOLL_RETURN_IF_ERROR(forget.bind(run, limits_.max_peers));
  return forget.run();
}

Result<std::uint64_t> HistoryStore::used_bytes() {
  std::uint64_t numbers[3] = {};
  int i = 0;
  for (const char* pragma : {"PRAGMA page_count", "PRAGMA freelist_count", "PRAGMA page_size"}) {
    ATOLL_ASSIGN_OR_RETURN(Statement statement, database_->prepare(pragma));
    ATOLL_ASSIGN_OR_RETURN(const bool row, statement.step());
    numbers[i++] = row ? static_cast<std::uint64_t>(statement.integer(0)) : 0;
  }
  return (numbers[0] - numbers[1]) * numbers[2];
}

Status HistoryStore::bound(const std::string& run) {
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const std::uint64_t used, used_bytes());
    if (used <= limits_.max_bytes) return ok_status();
    ATOLL_ASSIGN_OR_RETURN(const bool thinned, points_->thin_largest());
    if (thinned) continue;
    // Nothing but rounds is left: the older half of them goes.
    ATOLL_ASSIGN_OR_RETURN(Statement forget,
                           database_->prepare("DELETE FROM round WHERE run = ?1 AND round <= (SELECT (min(round) + "
                                              "max(round)) / 2 FROM round WHERE run = ?1)"));
    ATOLL_RETURN_IF_ERROR(forget.bind(run));
    return forget.run();
  }
}

// ---- reading

Result<std::string> HistoryStore::last_run() {
  ATOLL_ASSIGN_OR_RETURN(Statement statement, database_->prepare("SELECT id FROM run ORDER BY written DESC LIMIT 1"));
  ATOLL_ASSIGN_OR_RETURN(const bool row, statement.step());
  if (!row) return Error{ErrorCode::kNotFound, "the history is empty: nothing was trained here yet"};
  return statement.text(0);
}

Result<std::vector<HistoryRound>> HistoryStore::rounds(const std::string& run, std::optional<std::uint32_t> before,
                                                       std::uint32_t limit) {
  ATOLL_ASSIGN_OR_RETURN(
      Statement statement,
      database_->prepare(
          "SELECT round, began, ended, loss_nats, validation_loss_nats, tokens, bytes_sent, "
          "inner_seconds, sync_seconds, islands, accepted, state_hash FROM round WHERE run = ? AND round "
          "< ? ORDER BY round DESC LIMIT ?"));
  ATOLL_RETURN_IF_ERROR(
      statement.bind(run, before ? std::int64_t{*before} : std::numeric_limits<std::int64_t>::max(), limit));
  std::vector<HistoryRound> rounds;
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const bool row, statement.step());
    if (!row) break;
    rounds.push_back(read_round(statement));
  }
  ATOLL_RETURN_IF_ERROR(read_phases(run, rounds));
  ATOLL_RETURN_IF_ERROR(read_scores(run, rounds));
  return rounds;
}

// A file that an older program wrote last, and that is only read, has no such table.
Status HistoryStore::read_scores(const std::string& run, std::vector<HistoryRound>& rounds) {
  if (rounds.empty()) return ok_status();
  ATOLL_ASSIGN_OR_RETURN(Statement table, database_->prepare("SELECT 1 FROM sqlite_master WHERE name = 'score'"));
  ATOLL_ASSIGN_OR_RETURN(const bool there, table.step());
  if (!there) return ok_status();
  ATOLL_ASSIGN_OR_RETURN(Statement statement,
                         database_->prepare("SELECT round, task, metric, value FROM score WHERE run = ? AND round "
                                            "BETWEEN ? AND ? ORDER BY round DESC, task, rowid"));
  ATOLL_RETURN_IF_ERROR(statement.bind(run, rounds.back().round, rounds.front().round));
  auto of = rounds.begin();
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const bool row, statement.step());
    if (!row) return ok_status();
    const auto round = static_cast<std::uint32_t>(statement.integer(0));
    while (of != rounds.end() && of->round > round) ++of;
    if (of == rounds.end() || of->round != round) continue;
    of->scores.push_back({statement.text(1), statement.text(2), statement.real(3)});
  }
}

Status HistoryStore::read_phases(const std::string& run, std::vector<HistoryRound>& rounds) {
  if (rounds.empty()) return ok_status();
  ATOLL_ASSIGN_OR_RETURN(Statement statement,
                         database_->prepare("SELECT round, attempt, name, seconds, bytes FROM phase WHERE run = ? AND "
                                            "round BETWEEN ? AND ? ORDER BY round DESC, attempt, name"));
  ATOLL_RETURN_IF_ERROR(statement.bind(run, rounds.back().round, rounds.front().round));
  auto of = rounds.begin();
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const bool row, statement.step());
    if (!row) return ok_status();
    const auto round = static_cast<std::uint32_t>(statement.integer(0));
    while (of != rounds.end() && of->round > round) ++of;
    if (of == rounds.end() || of->round != round) continue;
    of->phases.push_back({static_cast<std::uint32_t>(statement.integer(1)), statement.text(2), statement.real(3),
                          static_cast<std::uint64_t>(statement.integer(4))});
  }
}

Result<std::vector<HistoryPeer>> HistoryStore::peers(const std::string& run) {
  ATOLL_ASSIGN_OR_RETURN(
      Statement statement,
      database_->prepare("SELECT island, name, address, state, last_change, rtt_seconds, bytes_per_second, "
                         "down_bytes_per_second, version, region, retries FROM peer WHERE run = ? ORDER BY state = "
                         "'up' DESC, last_change DESC, island"));
  ATOLL_RETURN_IF_ERROR(statement.bind(run));
  std::vector<HistoryPeer> peers;
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const bool row, statement.step());
    if (!row) return peers;
    peers.push_back({statement.text(0), statement.text(1), statement.text(2), statement.text(3), statement.real(4),
                     real(statement, 5), real(statement, 6), real(statement, 7), statement.text(8), statement.text(9),
                     static_cast<std::uint32_t>(statement.integer(10))});
  }
}

Result<std::optional<HistoryTotals>> HistoryStore::totals(const std::string& run) {
  ATOLL_ASSIGN_OR_RETURN(
      Statement statement,
      database_->prepare("SELECT earlier_tokens, pid, tokens FROM run WHERE id = ? AND tokens IS NOT "
                         "NULL"));
  ATOLL_RETURN_IF_ERROR(statement.bind(run));
  ATOLL_ASSIGN_OR_RETURN(const bool row, statement.step());
  if (!row) return std::optional<HistoryTotals>();
  return std::optional(HistoryTotals{static_cast<std::uint64_t>(statement.integer(0)), statement.integer(1),
                                     static_cast<std::uint64_t>(statement.integer(2))});
}

Result<std::optional<HistoryPast>> HistoryStore::past(const std::string& run) { return past_->read(run); }

Result<MetricAnswer> HistoryStore::metric(const MetricQuery& query) {
  std::string run = query.run;
  if (run.empty()) {
    ATOLL_ASSIGN_OR_RETURN(run, last_run());
  }
  return PastTable::has(query.name) ? past_->query(run, query) : points_->query(run, query);
}

Result<std::vector<std::string>> HistoryStore::metrics(const std::string& run) {
  ATOLL_ASSIGN_OR_RETURN(std::vector<std::string> names, points_->names(run));
  ATOLL_ASSIGN_OR_RETURN(const std::vector<std::string> past, past_->names(run));
  names.insert(names.end(), past.begin(), past.end());
  return names;
}

}  // namespace atl
