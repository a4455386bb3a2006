#include "net/base/log_limit.h"

#include <fmt/format.h>

#include <QtTest>

using namespace std::chrono_literals;

namespace atl {

class LogLimitTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_line_is_written_once_a_period_with_how_many_were_not();
  void keys_do_not_silence_each_other();
  void more_keys_than_there_is_room_for_share_one();
  void a_key_that_is_silent_for_a_period_makes_room();
};

using Count = std::optional<std::uint64_t>;
constexpr Clock::time_point kNow{1h};

void LogLimitTest::a_line_is_written_once_a_period_with_how_many_were_not() {
  LogLimit limit(5min);

  QCOMPARE(limit.pass("a", kNow), Count(0));
  QCOMPARE(limit.pass("a", kNow + 1s), Count());
  QCOMPARE(limit.pass("a", kNow + 299s), Count());
  QCOMPARE(limit.pass("a", kNow + 300s), Count(2));
  QCOMPARE(limit.pass("a", kNow + 301s), Count());
  QCOMPARE(limit.pass("a", kNow + 1h), Count(1));
}

void LogLimitTest::keys_do_not_silence_each_other() {
  LogLimit limit(5min);

  QCOMPARE(limit.pass("a", kNow), Count(0));
  QCOMPARE(limit.pass("b", kNow), Count(0));
}

void LogLimitTest::more_keys_than_there_is_room_for_share_one() {
  LogLimit limit(5min, 2);
  QCOMPARE(limit.pass("a", kNow), Count(0));
  QCOMPARE(limit.pass("b", kNow), Count(0));

  QCOMPARE(limit.pass("c", kNow), Count(0));
  for (int other = 0; other < 1000; ++other) QCOMPARE(limit.pass(fmt::format("d{}", other), kNow), Count());

  QCOMPARE(limit.pass("a", kNow), Count());
}

void LogLimitTest::a_key_that_is_silent_for_a_period_makes_room() {
  LogLimit limit(5min, 2);
  QCOMPARE(limit.pass("a", kNow), Count(0));
  QCOMPARE(limit.pass("b", kNow + 4min), Count(0));

  QCOMPARE(limit.pass("c", kNow + 6min), Count(0));

  QCOMPARE(limit.pass("c", kNow + 7min), Count());  // by its own name, and not by one that is shared
  QCOMPARE(limit.pass("d", kNow + 7min), Count(0));
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::LogLimitTest)
#include "log_limit_test.moc"
