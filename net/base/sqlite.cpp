#include "net/base/sqlite.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include "net/base/file.h"
#include "net/base/unique_fd.h"

namespace atl {
namespace {

ErrorCode code_of(int sqlite_code) {
  if (sqlite_code == SQLITE_IOERR_NOMEM) return ErrorCode::kInternal;  // the disk is none the worse for it
  switch (sqlite_code & 0xff) {
    case SQLITE_CONSTRAINT: return ErrorCode::kConflict;
    case SQLITE_FULL: return ErrorCode::kDiskFull;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return ErrorCode::kCorrupt;
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_READONLY: return ErrorCode::kPermissionDenied;
    case SQLITE_CANTOPEN: return ErrorCode::kNotFound;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return ErrorCode::kTimeout;
    case SQLITE_IOERR: return ErrorCode::kIo;
    default: return ErrorCode::kInternal;
  }
}

std::string_view advice(ErrorCode code) {
  switch (code) {
    case ErrorCode::kDiskFull: return ": free space on its disk, then start again";
    case ErrorCode::kCorrupt: return ": restore it from a backup; nothing was changed";
    case ErrorCode::kPermissionDenied: return ": run as the user that owns it, or change its permissions";
    case ErrorCode::kTimeout: return ": another process holds it; stop that one first";
    default: return "";
  }
}

Error sqlite_error(sqlite3* database, int sqlite_code, std::string_view action) {
  const char* file = database != nullptr ? sqlite3_db_filename(database, "main") : nullptr;
  const char* reason = database != nullptr ? sqlite3_errmsg(database) : sqlite3_errstr(sqlite_code);
  const ErrorCode code = code_of(sqlite_code);
  return Error{code, fmt::format("{} (database {}): {}{}", action, file != nullptr && *file != '\0' ? file : "?",
                                 reason, advice(code))};
}

Status check(sqlite3_stmt* statement, int sqlite_code, std::string_view action) {
  if (sqlite_code == SQLITE_OK) return ok_status();
  return sqlite_error(sqlite3_db_handle(statement), sqlite_code, action);
}

// SQLite would make it with the umask's mode; what hubs and islands keep is theirs alone.
Status make_private_file(const std::filesystem::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) return errno_error("open database", path);
  return ok_status();
}

}  // namespace

void SqliteDeleter::operator()(sqlite3* database) const noexcept { sqlite3_close_v2(database); }
void SqliteDeleter::operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }

bool is_disk_failure(ErrorCode code) {
  return code == ErrorCode::kDiskFull || code == ErrorCode::kIo || code == ErrorCode::kCorrupt ||
         code == ErrorCode::kPermissionDenied;
}

Result<Database> Database::open(const std::filesystem::path& path, DatabaseOptions options) {
  if (!options.read_only) ATOLL_RETURN_IF_ERROR(make_private_file(path));
  sqlite3* raw = nullptr;
  const int flags = SQLITE_OPEN_FULLMUTEX | (options.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
  const int opened = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  Database database(raw);
  if (opened != SQLITE_OK) {
    return sqlite_error(nullptr, opened, fmt::format("open database '{}'", path.string()));
  }
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, static_cast<int>(options.busy_timeout.count()));
  ATOLL_RETURN_IF_ERROR(database.exec("PRAGMA foreign_keys = ON"));
  if (!options.read_only) {
    ATOLL_RETURN_IF_ERROR(database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL"));
  } else {
    ATOLL_RETURN_IF_ERROR(
        database.exec("SELECT count(*) FROM sqlite_master"));  // a file that is no database is found out now
  }
  return database;
}

Status Database::exec(const std::string& sql) {
  const int code = sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return sqlite_error(database_.get(), code, sql.substr(0, 60));
  return ok_status();
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v3(database_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (code != SQLITE_OK) return sqlite_error(database_.get(), code, sql.substr(0, 60));
  return Statement(raw);
}

std::int64_t Database::last_insert_rowid() const { return sqlite3_last_insert_rowid(database_.get()); }
std::int64_t Database::changed_rows() const { return sqlite3_changes64(database_.get()); }

Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  Error error = sqlite_error(sqlite3_db_handle(statement_.get()), code, sqlite3_sql(statement_.get()));
  reset();  // releases its locks
  return error;
}

Status Statement::run() {
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const bool row, step());
    if (!row) break;
  }
  reset();
  return ok_status();
}

void Statement::reset() { sqlite3_reset(statement_.get()); }

Status Statement::bind_value(int index, std::int64_t value) {
  return check(statement_.get(), sqlite3_bind_int64(statement_.get(), index, value), "bind integer");
}
Status Statement::bind_value(int index, double value) {
  return check(statement_.get(), sqlite3_bind_double(statement_.get(), index, value), "bind real");
}
Status Statement::bind_value(int index, std::string_view value) {
  return check(statement_.get(),
               sqlite3_bind_text64(statement_.get(), index, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8),
               "bind text");
}
Status Statement::bind_value(int index, ByteView value) {
  return check(statement_.get(),
               sqlite3_bind_blob64(statement_.get(), index, value.data(), value.size(), SQLITE_TRANSIENT), "bind blob");
}
Status Statement::bind_value(int index, std::nullopt_t) {
  return check(statement_.get(), sqlite3_bind_null(statement_.get(), index), "bind null");
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
double Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }
std::string Statement::text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  return data == nullptr ? std::string()
                         : std::string(data, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column)));
}
Bytes Statement::blob(int column) const {
  const auto* data = static_cast<const std::byte*>(sqlite3_column_blob(statement_.get(), column));
  if (data == nullptr) return {};
  return Bytes(data, data + sqlite3_column_bytes(statement_.get(), column));
}
bool Statement::is_null(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }

Result<Transaction> Transaction::begin(Database& database) {
  ATOLL_RETURN_IF_ERROR(database.exec("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Status Transaction::commit() {
  ATOLL_RETURN_IF_ERROR(database_->exec("COMMIT"));
  database_ = nullptr;
  return ok_status();
}

Transaction::~Transaction() {
  if (database_ != nullptr) static_cast<void>(database_->exec("ROLLBACK"));
}

}  // namespace atl
