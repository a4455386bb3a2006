// What a machine gave is counted over every restart, and nothing twice.
#include "app/agent/contribution_book.h"

#include <QTemporaryDir>
#include <QtTest>

#include "net/base/file.h"

using namespace atl;

namespace {

IslandState says(std::int64_t pid, std::uint64_t tokens, std::uint64_t rounds = 0, const char* run = "run-a") {
  IslandState state;
  state.pid = pid;
  state.run_id = run;
  state.tokens = tokens;
  state.rounds_accepted = rounds;
  state.bytes_sent = 10 * tokens;
  state.inner_seconds = static_cast<double>(tokens) / 100;
  state.sync_seconds = static_cast<double>(tokens) / 100;
  return state;
}

}  // namespace

class ContributionBookTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void trainers_one_after_another_are_summed();
  void an_agent_that_takes_a_trainer_over_counts_nothing_twice();
  void a_state_that_comes_late_takes_nothing_back();
  void a_trainer_that_is_gone_is_not_heard();
  void runs_are_counted_apart_and_together();
  void of_more_runs_than_are_listed_the_oldest_count_in_all();
  void what_cannot_be_read_is_left_alone_data();
  void what_cannot_be_read_is_left_alone();
  void a_disk_that_refuses_is_said_and_tried_again();

 private:
  std::filesystem::path file() const {
    return std::filesystem::path(directory_.path().toStdString()) / "state" / "contributions.json";
  }
  QTemporaryDir directory_;
};

void ContributionBookTest::trainers_one_after_another_are_summed() {
  const auto path = file().parent_path() / "summed.json";
  {
    ContributionBook book(path);
    book.follow(100, true);
    book.take(says(100, 300'000, 7));
    book.flush();
  }
  ContributionBook book(path);
  book.follow(100, true);  // the system may give a number again
  book.take(says(100, 20'480, 1));

  const ContributionView given = book.of("run-a");
  QCOMPARE(given.run.tokens, 320'480u);
  QCOMPARE(given.run.rounds_accepted, 8u);
  QCOMPARE(given.run.bytes_sent, 3'204'800u);
  QVERIFY(qAbs(given.run.seconds - 2 * 3204.8) < 1e-6);
  QCOMPARE(given.life.tokens, given.run.tokens);
}

void ContributionBookTest::an_agent_that_takes_a_trainer_over_counts_nothing_twice() {
  const auto path = file().parent_path() / "taken.json";
  {
    ContributionBook book(path);
    book.follow(100, true);
    book.take(says(100, 1'000, 2));
    book.flush();
    book.take(says(100, 1'500, 3));  // this agent is killed before it writes that
  }
  ContributionBook book(path);
  book.follow(100, false);
  book.take(says(100, 1'600, 3));
  QCOMPARE(book.of("run-a").run.tokens, 1'600u);
  QCOMPARE(book.of("run-a").run.rounds_accepted, 3u);

  book.follow(200, false);  // one that nobody has counted
  book.take(says(200, 50));
  QCOMPARE(book.of("run-a").life.tokens, 1'650u);
}

void ContributionBookTest::a_state_that_comes_late_takes_nothing_back() {
  ContributionBook book(file().parent_path() / "late.json");
  book.follow(1, true);
  for (const std::uint64_t tokens : {100u, 80u, 100u, 120u}) book.take(says(1, tokens));
  QCOMPARE(book.of("run-a").run.tokens, 120u);
}

void ContributionBookTest::a_trainer_that_is_gone_is_not_heard() {
  ContributionBook book(file().parent_path() / "gone.json");
  book.take(says(1, 100));  // none is followed yet
  book.follow(1, true);
  book.take(says(1, 100));
  book.follow(2, true);
  book.take(says(1, 100));
  book.take(says(2, 5));
  QCOMPARE(book.of("run-a").run.tokens, 105u);
}

void ContributionBookTest::runs_are_counted_apart_and_together() {
  ContributionBook book(file().parent_path() / "apart.json");
  book.follow(1, true);
  book.take(says(1, 100));
  book.follow(2, true);
  book.take(says(2, 30, 0, "run-b"));
  QCOMPARE(book.of("run-a").run.tokens, 100u);
  QCOMPARE(book.of("run-b").run.tokens, 30u);
  QCOMPARE(book.of("run-b").life.tokens, 130u);
  QCOMPARE(book.of("run-c").run.tokens, 0u);
}

void ContributionBookTest::of_more_runs_than_are_listed_the_oldest_count_in_all() {
  const auto path = file().parent_path() / "many.json";
  const std::size_t runs = ContributionFile::kMaxRuns + 5;
  {
    ContributionBook book(path);
    for (std::size_t i = 0; i < runs; ++i) {
      book.follow(static_cast<std::int64_t>(i + 1), true);
      book.take(says(static_cast<std::int64_t>(i + 1), 10, 0, ("run-" + std::to_string(i)).c_str()));
    }
    book.flush();
  }
  const ContributionBook book(path);
  QCOMPARE(book.trouble(), std::string());
  QCOMPARE(book.of("run-0").run.tokens, 0u);
  QCOMPARE(book.of("run-" + std::to_string(runs - 1)).run.tokens, 10u);
  QCOMPARE(book.of("run-0").life.tokens, 10 * runs);
}

void ContributionBookTest::what_cannot_be_read_is_left_alone_data() {
  QTest::addColumn<QByteArray>("text");
  const std::string good = ContributionFile{}.to_json();
  QTest::newRow("no JSON") << QByteArray("garbage");
  QTest::newRow("cut") << QByteArray::fromStdString(good.substr(0, good.size() / 2));
  QTest::newRow("another version") << QByteArray::fromStdString(good).replace("\"version\": 1", "\"version\": 2");
  QTest::newRow("a negative number") << QByteArray::fromStdString(good).replace("\"tokens\": 0", "\"tokens\": -1");
  QTest::newRow("no time") << QByteArray::fromStdString(good).replace("\"seconds\": 0.0", "\"seconds\": -1.0");
  QTest::newRow("nothing in it") << QByteArray("{}");
}

void ContributionBookTest::what_cannot_be_read_is_left_alone() {
  QFETCH(const QByteArray, text);
  const auto path = file().parent_path() / "damaged.json";
  QVERIFY(make_directories(path.parent_path(), FileMode::kPrivate).ok());
  QVERIFY(write_file_atomically(path, text.toStdString(), FileMode::kPrivate).ok());
  ContributionBook book(path);
  book.follow(1, true);
  book.take(says(1, 100));
  book.flush();

  QVERIFY2(book.trouble().find("move the file away") != std::string::npos, book.trouble().c_str());
  QCOMPARE(*read_file(path, 1 << 20), text.toStdString());
}

void ContributionBookTest::a_disk_that_refuses_is_said_and_tried_again() {
  const auto path = file().parent_path() / "blocked" / "contributions.json";
  QVERIFY(make_directories(file().parent_path(), FileMode::kPrivate).ok());
  QVERIFY(write_file_atomically(path.parent_path(), "no directory", FileMode::kPrivate).ok());
  ContributionBook book(path);
  book.follow(1, true);
  book.take(says(1, 100));
  book.flush();
  const bool told = !book.trouble().empty();
  std::filesystem::remove(path.parent_path());
  book.flush();

  QVERIFY(told || std::filesystem::exists(path));  // root may write anywhere
  QCOMPARE(book.trouble(), std::string());
  QCOMPARE(ContributionBook(path).of("run-a").run.tokens, 100u);
}

QTEST_GUILESS_MAIN(ContributionBookTest)
#include "contribution_book_test.moc"
