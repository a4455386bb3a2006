#include "net/base/sqlite.h"

#include <QTemporaryDir>
#include <QtTest>

#include "net/base/file.h"

namespace atl {

class SqliteTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void values_of_every_type_come_back_as_they_were_bound();
  void a_transaction_that_is_not_committed_leaves_nothing();
  void a_committed_transaction_is_seen_by_a_second_reader();
  void the_file_is_its_owners_alone();
  void a_file_that_is_no_database_is_corrupt();
  void a_missing_file_is_not_made_for_a_reader();
  void a_writer_that_holds_the_file_too_long_is_a_timeout();
  void what_a_constraint_forbids_is_a_conflict_and_no_failure_of_the_disk();

 private:
  std::filesystem::path path(const char* name) const {
    return std::filesystem::path(directory_.path().toStdString()) / name;
  }
  Database open(const char* name) const {
    auto database = Database::open(path(name));
    if (!database.ok()) qFatal("%s", database.error().message.c_str());
    return std::move(*database);
  }
  QTemporaryDir directory_;
};

void SqliteTest::values_of_every_type_come_back_as_they_were_bound() {
  Database database = open("types");
  QVERIFY(database.exec("CREATE TABLE t (a, b, c, d, e, f)").ok());
  const Bytes blob{std::byte{0}, std::byte{255}};
  auto insert = database.prepare("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)");
  QVERIFY(insert.ok());

  QVERIFY(insert
              ->bind(std::uint64_t{1} << 62, 0.1, "text", std::string("with\0zero", 9), ByteView(blob),
                     std::optional<int>())
              .ok());
  QVERIFY(insert->run().ok());

  auto select = database.prepare("SELECT * FROM t");
  QVERIFY(select.ok());
  QVERIFY(*select->step());
  QCOMPARE(select->integer(0), std::int64_t{1} << 62);
  QCOMPARE(select->real(1), 0.1);
  QCOMPARE(select->text(2), std::string("text"));
  QCOMPARE(select->text(3), std::string("with\0zero", 9));
  QCOMPARE(select->blob(4), blob);
  QVERIFY(select->is_null(5));
  QVERIFY(!*select->step());
}

void SqliteTest::what_a_constraint_forbids_is_a_conflict_and_no_failure_of_the_disk() {
  Database database = open("constraints");
  QVERIFY(database.exec("CREATE TABLE t (a UNIQUE NOT NULL, b CHECK (b > 0))").ok());
  QVERIFY(database.exec("INSERT INTO t VALUES (1, 1)").ok());

  for (const char* row : {"(1, 1)", "(NULL, 1)", "(2, 0)"}) {
    const Status inserted = database.exec(std::string("INSERT INTO t VALUES ") + row);
    QCOMPARE(inserted.error().code, ErrorCode::kConflict);
    QVERIFY(!is_disk_failure(inserted.error().code));
  }

  QVERIFY(!is_disk_failure(ErrorCode::kTimeout));  // another process in the way
  QVERIFY(!is_disk_failure(database.exec("SELECT * FROM nowhere").error().code));
  for (const ErrorCode code : {ErrorCode::kDiskFull, ErrorCode::kIo, ErrorCode::kCorrupt})
    QVERIFY(is_disk_failure(code));
}

void SqliteTest::a_transaction_that_is_not_committed_leaves_nothing() {
  Database database = open("rollback");
  QVERIFY(database.exec("CREATE TABLE t (a)").ok());
  {
    auto transaction = Transaction::begin(database);
    QVERIFY(transaction.ok());
    QVERIFY(database.exec("INSERT INTO t VALUES (1)").ok());
  }

  auto count = database.prepare("SELECT count(*) FROM t");
  QVERIFY(*count->step());
  QCOMPARE(count->integer(0), std::int64_t{0});
}

void SqliteTest::a_committed_transaction_is_seen_by_a_second_reader() {
  Database database = open("commit");
  QVERIFY(database.exec("CREATE TABLE t (a)").ok());
  auto transaction = Transaction::begin(database);
  QVERIFY(database.exec("INSERT INTO t VALUES (7)").ok());
  QVERIFY(transaction->commit().ok());

  auto reader = Database::open(path("commit"), {.read_only = true});
  QVERIFY(reader.ok());
  auto select = reader->prepare("SELECT a FROM t");
  QVERIFY(*select->step());
  QCOMPARE(select->integer(0), std::int64_t{7});
  const Status written = reader->exec("INSERT INTO t VALUES (8)");
  QCOMPARE(written.error().code, ErrorCode::kPermissionDenied);
}

void SqliteTest::the_file_is_its_owners_alone() {
  open("private");

  QCOMPARE(std::filesystem::status(path("private")).permissions(),
           std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

void SqliteTest::a_file_that_is_no_database_is_corrupt() {
  QVERIFY(write_file_atomically(path("text"), std::string(4096, 'x'), FileMode::kPrivate).ok());

  const auto database = Database::open(path("text"));

  QVERIFY(!database.ok());
  QCOMPARE(database.error().code, ErrorCode::kCorrupt);
  QVERIFY(database.error().message.find("backup") != std::string::npos);
}

void SqliteTest::a_missing_file_is_not_made_for_a_reader() {
  const auto database = Database::open(path("missing"), {.read_only = true});

  QVERIFY(!database.ok());
  QCOMPARE(database.error().code, ErrorCode::kNotFound);
  QVERIFY(!std::filesystem::exists(path("missing")));
}

void SqliteTest::a_writer_that_holds_the_file_too_long_is_a_timeout() {
  Database first = open("busy");
  QVERIFY(first.exec("CREATE TABLE t (a)").ok());
  auto held = Transaction::begin(first);
  QVERIFY(held.ok());
  auto second = Database::open(path("busy"), {.busy_timeout = std::chrono::milliseconds(1)});
  QVERIFY(second.ok());

  const auto blocked = Transaction::begin(*second);

  QVERIFY(!blocked.ok());
  QCOMPARE(blocked.error().code, ErrorCode::kTimeout);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::SqliteTest)
#include "sqlite_test.moc"
