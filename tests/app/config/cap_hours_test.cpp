// Limits on transfers by hours of the day, as an owner writes them.
#include "app/config/cap_hours.h"

#include <QtTest>

namespace atl {
namespace {

constexpr int at(int hour, int minute = 0) { return hour * 60 + minute; }
constexpr double kMegabit = 1e6 / 8;

}  // namespace

class CapHoursTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void hours_with_their_limits_are_read_data();
  void hours_with_their_limits_are_read();
  void bad_input_says_what_to_write_data();
  void bad_input_says_what_to_write();
  void each_minute_has_one_limit_data();
  void each_minute_has_one_limit();
  void a_change_is_found_over_midnight();
  void what_is_the_same_all_day_never_changes();
};

void CapHoursTest::hours_with_their_limits_are_read_data() {
  QTest::addColumn<QString>("written");
  QTest::addColumn<QString>("kept");
  QTest::newRow("none") << "  "
                        << "";
  QTest::newRow("one") << "08:00-18:00 20 Mbit/s"
                       << "08:00-18:00 20 Mbit/s";
  QTest::newRow("several") << "08:00-18:00  20Mbit/s ,18:00-23:00 2.5MB/s,23:00-08:00\tnone"
                           << "08:00-18:00 20 Mbit/s, 18:00-23:00 2.5 MB/s, 23:00-08:00 none";
  QTest::newRow("least") << "00:00-24:00 1 Mbit/s"
                         << "00:00-24:00 1 Mbit/s";
}

void CapHoursTest::hours_with_their_limits_are_read() {
  QFETCH(QString, written);
  QFETCH(QString, kept);
  const auto hours = parse_cap_hours(written.toStdString());
  QVERIFY2(hours.ok(), hours.ok() ? "" : hours.error().message.c_str());
  QCOMPARE(QString::fromStdString(to_string(*hours)), kept);
  QCOMPARE(*parse_cap_hours(to_string(*hours)), *hours);
}

void CapHoursTest::bad_input_says_what_to_write_data() {
  QTest::addColumn<QString>("written");
  QTest::addColumn<QString>("said");
  QTest::newRow("no hours") << "20 Mbit/s"
                            << "write 08:00-18:00 20 Mbit/s";
  QTest::newRow("no rate") << "08:00-18:00"
                           << "behind the hours must be a rate of at least 1 Mbit/s";
  QTest::newRow("no unit") << "08:00-18:00 20"
                           << "with its unit";
  QTest::newRow("another unit") << "08:00-18:00 20 Mbit"
                                << "with its unit";
  QTest::newRow("less than passes") << "08:00-18:00 999 kbit/s"
                                    << "pause training (schedule.hours)";
  QTest::newRow("negative") << "08:00-18:00 -20 Mbit/s"
                            << "a rate of at least";
  QTest::newRow("infinite") << "08:00-18:00 inf Mbit/s"
                            << "a rate of at least";
  QTest::newRow("enormous") << "08:00-18:00 1e300 Gbit/s"
                            << "a rate of at least";
  QTest::newRow("no such time") << "08:00-25:00 20 Mbit/s"
                                << "does not begin with hours of the day";
  QTest::newRow("no time between") << "08:00-08:00 20 Mbit/s"
                                   << "does not begin with hours of the day";
  QTest::newRow("empty between commas") << "08:00-09:00 2 Mbit/s,,10:00-11:00 2 Mbit/s"
                                        << "does not begin with hours of the day";
  QTest::newRow("two at once") << "08:00-18:00 20 Mbit/s, 17:59-20:00 50 Mbit/s"
                               << "at 17:59 both '08:00-18:00 20 Mbit/s' and '17:59-20:00 50 Mbit/s' hold";
  QTest::newRow("two over midnight") << "22:00-06:00 20 Mbit/s, 05:00-07:00 none"
                                     << "at 05:00 both";
  QString many;
  for (int i = 0; i < 33; ++i) {
    const int minute = 2 * i;
    many += QString("%1%2:%3-%2:%4 5 Mbit/s")
                .arg(i == 0 ? "" : ", ")
                .arg(minute / 60, 2, 10, QChar('0'))
                .arg(minute % 60, 2, 10, QChar('0'))
                .arg(minute % 60 + 1, 2, 10, QChar('0'));
  }
  QTest::newRow("too many") << many << "more than 32 spans";
}

void CapHoursTest::bad_input_says_what_to_write() {
  QFETCH(QString, written);
  QFETCH(QString, said);
  const auto hours = parse_cap_hours(written.toStdString());
  QVERIFY(!hours.ok());
  QVERIFY2(QString::fromStdString(hours.error().message).contains(said), hours.error().message.c_str());
}

void CapHoursTest::each_minute_has_one_limit_data() {
  QTest::addColumn<int>("minute");
  QTest::addColumn<double>("megabits");  // 0: no limit
  QTest::newRow("before") << at(7, 59) << 100.0;
  QTest::newRow("from the first minute") << at(8) << 20.0;
  QTest::newRow("to the last") << at(17, 59) << 20.0;
  QTest::newRow("the next span") << at(18) << 50.0;
  QTest::newRow("otherwise") << at(21, 30) << 100.0;
  QTest::newRow("at night") << at(23) << 0.0;
  QTest::newRow("over midnight") << at(0) << 0.0;
  QTest::newRow("until the morning") << at(5, 59) << 0.0;
  QTest::newRow("no longer") << at(6) << 100.0;
}

void CapHoursTest::each_minute_has_one_limit() {
  QFETCH(int, minute);
  QFETCH(double, megabits);
  const CapRule rule{100 * kMegabit,
                     parse_cap_hours("08:00-18:00 20 Mbit/s, 18:00-21:00 50 Mbit/s, 23:00-06:00 none").value()};
  QCOMPARE(rule.at(minute).value_or(0), megabits * kMegabit);
}

void CapHoursTest::a_change_is_found_over_midnight() {
  const CapRule rule{{}, parse_cap_hours("22:00-06:00 20 Mbit/s, 06:00-07:00 20 Mbit/s").value()};
  QCOMPARE(rule.changes_after(at(21, 59)), std::optional(1));
  QCOMPARE(rule.changes_after(at(22)), std::optional(9 * 60));  // the next span is the same limit
  QCOMPARE(rule.changes_after(at(7)), std::optional(15 * 60));
}

void CapHoursTest::what_is_the_same_all_day_never_changes() {
  QVERIFY(!CapRule{}.changes_after(at(12)));
  QVERIFY(!CapRule({20 * kMegabit, {}}).changes_after(at(12)));
  QVERIFY(!CapRule({20 * kMegabit, parse_cap_hours("08:00-18:00 20 Mbit/s").value()}).changes_after(at(12)));
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::CapHoursTest)
#include "cap_hours_test.moc"
