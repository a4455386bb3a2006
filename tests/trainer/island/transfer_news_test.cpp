#include "trainer/island/transfer_news.h"

#include <QtTest>
#include <nlohmann/json.hpp>
#include <vector>

using namespace atl;
using namespace std::chrono_literals;

namespace {

const Clock::time_point kStart = Clock::time_point(std::chrono::hours(100));

struct Told {
  std::vector<nlohmann::json> all;
  TransferNews::Publish publish() {
    return [this](const ControlEvent& event) {
      QCOMPARE(std::string(name_of(event)), std::string("transfer"));
      all.push_back(data_of(event));
    };
  }
};

}  // namespace

class TransferNewsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void bytes_rate_and_time_left_are_told_and_the_end();
  void it_is_told_at_most_four_times_a_second();
  void what_an_earlier_try_left_does_not_count_as_speed();
  void a_transfer_that_begins_anew_has_no_negative_rate();
  void nothing_to_transfer_is_done_at_once();
  void a_failure_says_why();
};

void TransferNewsTest::bytes_rate_and_time_left_are_told_and_the_end() {
  Told told;
  TransferNews news(Download::kState, told.publish());

  for (std::uint64_t second = 0; second <= 10; ++second) {
    news.progress(second * 1000, 20'000, kStart + std::chrono::seconds(second));
  }
  news.done();

  QVERIFY(!told.all[0].contains("bytes_per_second"));
  const nlohmann::json& tenth = told.all[10];
  QCOMPARE(tenth["what"].get<std::string>(), std::string("state"));
  QCOMPARE(tenth["status"].get<std::string>(), std::string("running"));
  QCOMPARE(tenth["done_bytes"].get<int>(), 10'000);
  QCOMPARE(tenth["total_bytes"].get<int>(), 20'000);
  QCOMPARE(tenth["bytes_per_second"].get<double>(), 1000.0);
  QCOMPARE(tenth["seconds_left"].get<double>(), 10.0);
  QCOMPARE(told.all.back()["status"].get<std::string>(), std::string("done"));
  QCOMPARE(told.all.back()["done_bytes"].get<int>(), 20'000);
}

void TransferNewsTest::it_is_told_at_most_four_times_a_second() {
  Told told;
  TransferNews news(Download::kData, told.publish());

  for (int i = 0; i <= 1000; ++i) news.progress(static_cast<std::uint64_t>(i), 1000, kStart + i * 10ms);

  QVERIFY(told.all.size() <= 41);
  QVERIFY(told.all.size() >= 38);
}

void TransferNewsTest::what_an_earlier_try_left_does_not_count_as_speed() {
  Told told;
  TransferNews news(Download::kData, told.publish());

  news.progress(1'000'000, 2'000'000, kStart);
  news.progress(1'001'000, 2'000'000, kStart + 1s);

  QCOMPARE(told.all.back()["bytes_per_second"].get<double>(), 1000.0);
}

void TransferNewsTest::a_transfer_that_begins_anew_has_no_negative_rate() {
  Told told;
  TransferNews news(Download::kData, told.publish());

  news.progress(5000, 10'000, kStart);
  news.progress(6000, 10'000, kStart + 1s);
  news.progress(0, 10'000, kStart + 2s);
  news.progress(0, 10'000, kStart + 3s);

  QVERIFY(!told.all[2].contains("bytes_per_second"));
  QCOMPARE(told.all[3]["bytes_per_second"].get<double>(), 0.0);
  QVERIFY(!told.all[3].contains("seconds_left"));
}

void TransferNewsTest::nothing_to_transfer_is_done_at_once() {
  Told told;
  TransferNews news(Download::kData, told.publish());

  news.done();

  QCOMPARE(told.all.size(), std::size_t{1});
  QCOMPARE(told.all[0].dump(), std::string(R"({"done_bytes":0,"status":"done","total_bytes":0,"what":"data"})"));
}

void TransferNewsTest::a_failure_says_why() {
  Told told;
  TransferNews news(Download::kState, told.publish());

  news.progress(1, 2, kStart);
  news.failed("the sources moved on");

  QCOMPARE(told.all.back()["status"].get<std::string>(), std::string("failed"));
  QCOMPARE(told.all.back()["text"].get<std::string>(), std::string("the sources moved on"));
  QCOMPARE(told.all.back()["done_bytes"].get<int>(), 1);
}

QTEST_GUILESS_MAIN(TransferNewsTest)
#include "transfer_news_test.moc"
