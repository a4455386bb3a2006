// SQLite, owned: a database file, its statements and transactions. WAL, synchronous=FULL: what commit() has returned
// from survives a crash and a power cut. One thread at a time may use a Database and what was made from it.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "net/base/bytes.h"
#include "net/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace atl {

struct SqliteDeleter {
  void operator()(sqlite3* database) const noexcept;
  void operator()(sqlite3_stmt* statement) const noexcept;
};

// A prepared statement, used again and again: bind, step until false, reset. Must not outlive its Database.
class Statement {
 public:
  // Parameters from 1, in order; starts the statement afresh. Text and blobs are copied.
  template <class... Values>
  Status bind(const Values&... values) {
    reset();
    int index = 0;
    Status status;
    static_cast<void>(((status = bind_value(++index, values), status.ok()) && ...));
    return status;
  }

  // True: there is a row, read it with the functions below. False: done.
  Result<bool> step();
  // For a statement without rows: steps to its end and resets.
  Status run();
  void reset();

  // Columns from 0 of the row that step() found.
  std::int64_t integer(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  Bytes blob(int column) const;
  bool is_null(int column) const;

 private:
  friend class Database;
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

  Status bind_value(int index, std::int64_t value);
  Status bind_value(int index, double value);
  Status bind_value(int index, std::string_view value);
  Status bind_value(int index, ByteView value);
  Status bind_value(int index, std::nullopt_t);
  template <class T>
  requires std::is_integral_v<T> Status bind_value(int index, T value) {
    return bind_value(index, static_cast<std::int64_t>(value));
  }
  Status bind_value(int index, const char* value) { return bind_value(index, std::string_view(value)); }
  Status bind_value(int index, const std::string& value) { return bind_value(index, std::string_view(value)); }
  template <class T>
  Status bind_value(int index, const std::optional<T>& value) {
    return value ? bind_value(index, *value) : bind_value(index, std::nullopt);
  }

  std::unique_ptr<sqlite3_stmt, SqliteDeleter> statement_;
};

// Of an error of this file's functions: the file or its disk fails, whatever is asked of it. Else that statement alone
// does: kConflict (a constraint forbids it), kTimeout (another process was in the way) and others.
bool is_disk_failure(ErrorCode code);

struct DatabaseOptions {
  bool read_only = false;
  std::chrono::milliseconds busy_timeout{5'000};  // wait so long for another process's transaction
};

class Database {
 public:
  // Makes the file (0600) when it is not there, unless read_only. kCorrupt when it is no database.
  static Result<Database> open(const std::filesystem::path& path, DatabaseOptions options = {});

  Status exec(const std::string& sql);  // one or more statements without parameters or rows
  Result<Statement> prepare(std::string_view sql);
  std::int64_t last_insert_rowid() const;
  std::int64_t changed_rows() const;  // by the last INSERT, UPDATE or DELETE

 private:
  explicit Database(sqlite3* database) : database_(database) {}
  std::unique_ptr<sqlite3, SqliteDeleter> database_;
};

// BEGIN IMMEDIATE ... COMMIT; rolled back by the destructor unless committed. `database` outlives it.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  Status commit();  // on disk when it returns ok

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace atl
