// Serving keeps to the owner's limit, and out of the ring's way. Times are made up.
#include "net/recovery/serving_pace.h"

#include <QtTest>

#include "net/recovery/catch_up_pace.h"
#include "net/recovery/fetch_rates.h"
#include "net/transport/https_pace.h"

using namespace std::chrono_literals;

namespace atl {
namespace {

constexpr double kMega = 1e6;

// Whoever asks for more whenever it was sent: bytes that it got to send in that time.
std::uint64_t sent_within(ServingPace& pace, Clock::time_point from, Clock::duration time) {
  std::uint64_t sent = 0;
  for (Clock::time_point now = from;;) {
    const ServingPace::Turn turn = pace.next(1 << 30, now);
    if (turn.when >= from + time) return sent;
    sent += turn.bytes;
    now = turn.when;
  }
}

}  // namespace

class ServingPaceTest : public QObject {
  Q_OBJECT

  const Clock::time_point begin_ = Clock::now();

 private Q_SLOTS:
  void without_a_limit_all_goes_at_once_between_attempts();
  void the_owners_limit_holds_data();
  void the_owners_limit_holds();
  void during_an_attempt_it_has_a_hundredth_of_the_link();
  void ring_and_serving_share_what_the_owner_allows();
  void serving_and_publishing_share_what_the_owner_allows();
  void another_limit_holds_from_the_next_turn_on();
  void turns_come_in_the_order_of_asking();
  void what_is_held_back_is_no_time_of_the_peers();
  void a_link_that_carries_less_than_the_averages_never_catches_up();
  void nothing_is_said_of_a_link_before_rounds_have_passed();
  void what_is_slow_is_asked_again_only_where_the_way_has_room();
};

void ServingPaceTest::without_a_limit_all_goes_at_once_between_attempts() {
  ServingPace pace;
  for (int i = 0; i < 1000; ++i) {
    const ServingPace::Turn turn = pace.next(1 << 30, begin_);
    QCOMPARE(turn.bytes, ServingPace::kMostAtOnce);
    QVERIFY(turn.when == begin_);
  }
}

void ServingPaceTest::the_owners_limit_holds_data() {
  QTest::addColumn<double>("limit");
  QTest::newRow("slow") << 30e3;
  QTest::newRow("usual") << 5 * kMega;
  QTest::newRow("fast") << 2000 * kMega;
}

void ServingPaceTest::the_owners_limit_holds() {
  QFETCH(double, limit);
  ServingPace pace(limit);
  const auto sent = static_cast<double>(sent_within(pace, begin_, 10s));
  // Beside the rate: 50 ms of it made up for at the beginning, and the last turn.
  const double most = limit * 10.05 + ServingPace::kMostAtOnce;
  QVERIFY2(sent <= most && sent >= limit * 9.9, qPrintable(QString::number(sent)));
}

void ServingPaceTest::during_an_attempt_it_has_a_hundredth_of_the_link() {
  ServingPace pace;
  {
    const ServingPace::Attempt attempt(pace);
    const auto unknown = static_cast<double>(sent_within(pace, begin_, 10s));
    QVERIFY(unknown <= ServingPace::kFloor * 10.05 + ServingPace::kMostAtOnce && unknown >= ServingPace::kFloor * 9.9);
  }
  pace.saw_link(100 * kMega);
  QVERIFY(pace.next(1, begin_ + 20s).when == begin_ + 20s);
  {
    const ServingPace::Attempt attempt(pace), of_another_fragment(pace);
    const auto sent = static_cast<double>(sent_within(pace, begin_ + 30s, 10s));
    QVERIFY(sent <= kMega * 10.05 + ServingPace::kMostAtOnce && sent >= kMega * 9.9);
  }
  QCOMPARE(pace.next(1 << 30, begin_ + 60s).bytes, ServingPace::kMostAtOnce);
}

void ServingPaceTest::ring_and_serving_share_what_the_owner_allows() {
  for (const double limit : {40e3, 1 * kMega, 20 * kMega}) {
    ServingPace pace(limit);
    pace.saw_link(1000 * kMega);
    const ServingPace::Attempt attempt(pace);
    const auto served = static_cast<double>(sent_within(pace, begin_, 100s)) / 100;
    QVERIFY(*pace.left_to_ring() >= 0.75 * limit);
    QVERIFY(served > 0.009 * limit);
    QVERIFY(served + *pace.left_to_ring() <= limit + (0.05 * limit + ServingPace::kMostAtOnce) / 100);
  }
  QVERIFY(!ServingPace().left_to_ring());
}

void ServingPaceTest::serving_and_publishing_share_what_the_owner_allows() {
  const double limit = 5 * kMega;
  ServingPace pace(limit);
  const ServingPace::Part part(pace);
  QCOMPARE(pace.left_to_parts(begin_), std::optional(limit));  // nobody is served

  const auto served = static_cast<double>(sent_within(pace, begin_, 10s)) / 10;

  const double published = *pace.left_to_parts(begin_ + 10s);
  QVERIFY(served + published <= 1.01 * limit + static_cast<double>(ServingPace::kMostAtOnce) / 10);
  QVERIFY(served >= 0.4 * limit && published >= 0.4 * limit);
  const ServingPace::Attempt attempt(pace);
  QCOMPARE(pace.left_to_parts(begin_ + 10s), pace.left_to_ring());  // which attempts and parts divide (UploadShare)
  QVERIFY(!ServingPace().left_to_parts(begin_));
}

void ServingPaceTest::another_limit_holds_from_the_next_turn_on() {
  ServingPace pace;
  QVERIFY(!pace.left_to_ring());
  pace.allow(kMega);
  const auto sent = static_cast<double>(sent_within(pace, begin_, 10s));
  QVERIFY(sent <= 10.05 * kMega + ServingPace::kMostAtOnce && sent >= 9.9 * kMega);
  QVERIFY(*pace.left_to_ring() < kMega);
  pace.allow({});
  QVERIFY(pace.next(1 << 30, begin_ + 11s).when == begin_ + 11s);
}

void ServingPaceTest::turns_come_in_the_order_of_asking() {
  ServingPace pace(100e3);
  Clock::time_point before = begin_;
  for (int i = 0; i < 100; ++i) {
    const auto turn = pace.next(4096, begin_);
    QVERIFY(turn.when >= before);
    before = turn.when;
  }
  QVERIFY(before > begin_ + 3s);  // 400 KiB at 100 KB/s
}

void ServingPaceTest::what_is_held_back_is_no_time_of_the_peers() {
  const HttpsPaceLimits limits;
  HttpsPace pace(limits);
  pace.begin_answer(begin_, 0);
  pace.held_back(limits.window);
  QVERIFY(!pace.is_over(begin_ + 2 * limits.window - 1ms, limits.least_bytes - 1, 1));
  QVERIFY(pace.is_over(begin_ + 2 * limits.window, limits.least_bytes - 1, 1));
}

void ServingPaceTest::a_link_that_carries_less_than_the_averages_never_catches_up() {
  CatchUpPace slow, fast;
  // A round every 20 s, of an average of 100 MB: 40 Mbit/s. One link carries 4 MB/s, the other 6.
  for (std::uint32_t round = 0; round <= 4; ++round) {
    slow.target_is(OuterStep{10 + round}, round * 80'000'000ull, begin_ + round * 20s);
    fast.target_is(OuterStep{10 + round}, round * 120'000'000ull, begin_ + round * 20s);
  }
  const auto verdict = slow.never_ends(100'000'000);
  QVERIFY(verdict.has_value());
  QCOMPARE(verdict->needed, 5e6);
  QCOMPARE(verdict->bytes_per_second, 4e6);
  QVERIFY(text_of(*verdict).find("40.0 Mbit/s") != std::string::npos);
  QVERIFY(text_of(*verdict).find("every 20 s") != std::string::npos);
  QVERIFY(!fast.never_ends(100'000'000));
}

void ServingPaceTest::nothing_is_said_of_a_link_before_rounds_have_passed() {
  CatchUpPace pace;
  QVERIFY(!pace.never_ends(100));
  for (std::uint32_t round = 0; round <= 2; ++round) pace.target_is(OuterStep{round}, 0, begin_ + round * 60s);
  QVERIFY(!pace.never_ends(100));
  pace.target_is(OuterStep{3}, 0, begin_ + 180s);
  QVERIFY(pace.never_ends(100).has_value());
  pace.target_is(OuterStep{1}, 0, begin_ + 200s);  // a way back
  QVERIFY(!pace.never_ends(100));
}

void ServingPaceTest::what_is_slow_is_asked_again_only_where_the_way_has_room() {
  // Six requests of 16 MB share a way of 12 MB/s, all of it, for ten seconds.
  FetchRates rates;
  FlightRate share(begin_), silent(begin_);
  for (int i = 0; i <= 40; ++i) {
    rates.look(static_cast<std::uint64_t>(i) * 3'000'000, begin_ + i * 250ms);
    share.look(static_cast<std::uint64_t>(i) * 250'000, begin_ + i * 250ms);
    silent.look(std::min(i, 20) * 250'000ull, begin_ + i * 250ms);
  }
  const auto now = begin_ + 10s;
  QCOMPARE(share.bytes_per_second(now), kMega);
  QCOMPARE(silent.bytes_per_second(now), 0.0);
  QVERIFY(!rates.is_worth_asking_again(15'000'000, kMega, 16'000'000, 12 * kMega));
  // The others are done, and this one is as slow as before: 11 MB/s are free.
  QVERIFY(rates.is_worth_asking_again(15'000'000, kMega, 16'000'000, kMega));
  QVERIFY(!rates.is_worth_asking_again(1'000'000, kMega, 16'000'000, kMega));
  QVERIFY(rates.is_worth_asking_again(1'000'000, 0, 16'000'000, 12 * kMega));
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::ServingPaceTest)
#include "serving_pace_test.moc"
