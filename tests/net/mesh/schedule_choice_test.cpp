#include "net/mesh/schedule_choice.h"

#include <QtTest>
#include <cmath>

namespace atl {
namespace {

using std::chrono::hours;

const Clock::time_point kStart = Clock::time_point(hours(100));

// Alike for both schedules.
ScheduleQuestion question(int islands, double bytes, double rate, double rtt, double loss = 0) {
  const UsedLinks links{rate, rtt, loss};
  return {islands, bytes, links, links};
}

std::vector<AttemptMember> members(int count) {
  std::vector<AttemptMember> order;
  for (int i = 0; i < count; ++i) order.push_back({IslandId{"isl-" + std::to_string(i)}, Address{"10.0.0.1", 1}, 64});
  return order;
}

// Each direction of each pair: 10 MB/s, 0.2 s.
LinkMatrix all_measured(const std::vector<AttemptMember>& order) {
  LinkMatrix links;
  for (const AttemptMember& from : order) {
    for (const AttemptMember& to : order) links.report({from.id, to.id, 10e6, 0.2, false}, kStart);
  }
  return links;
}

bool close_to(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

}  // namespace

class ScheduleChoiceTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_chunk_loses_few_packets_each_or_many_of_which_the_last_takes_longest();
  void a_ring_takes_its_bytes_or_its_hops_delays_and_an_exchange_both_but_two_hops();
  void what_delays_go_directly_and_what_the_links_fill_goes_round_data();
  void what_delays_go_directly_and_what_the_links_fill_goes_round();
  void an_exchange_is_given_up_only_where_the_ring_is_faster();
  void a_gain_of_moments_changes_nothing();
  void the_ring_is_judged_by_its_own_edges_and_an_exchange_by_the_worst_pair();
  void an_exchange_among_few_or_strangers_or_the_unmeasured_is_out_of_the_question();
  void a_pair_measured_one_way_has_met_and_a_member_that_never_sent_is_not_believed();
  void one_that_nobody_can_dial_comes_first_and_keeps_its_neighbours();
  void two_that_nobody_can_dial_cannot_exchange();
  void a_false_word_of_ones_own_links_costs_no_more_than_the_model_says();
  void an_attempt_may_take_ten_times_what_its_slowest_link_needs();
  void what_nobody_measured_or_says_to_be_slower_is_taken_for_half_a_megabit();
  void an_edge_that_nobody_measured_is_taken_for_half_of_what_its_ends_do_with_others();
  void a_long_ring_of_lossy_links_has_the_time_that_its_delays_take();
};

void ScheduleChoiceTest::a_chunk_loses_few_packets_each_or_many_of_which_the_last_takes_longest() {
  QCOMPARE(recoveries(1000, 0), 0.0);
  QCOMPARE(recoveries(0, 0.01), 0.0);
  QVERIFY(close_to(recoveries(10, 0.001), 0.01));  // one in a hundred chunks loses one
  QVERIFY(close_to(recoveries(1, 0.01), 0.01));
  QVERIFY(close_to(recoveries(10'000, 0.01), 2));  // of 10,000 a hundred are lost, of these one, and that gets through
  QCOMPARE(recoveries(10'000, 1), recoveries(10'000, 0.2));  // nothing that carries bytes loses more
}

void ScheduleChoiceTest::a_ring_takes_its_bytes_or_its_hops_delays_and_an_exchange_both_but_two_hops() {
  const ScheduleQuestion small = question(4, 4e6, 10e6, 0.4), large = question(4, 400e6, 10e6, 0.4);

  QVERIFY(close_to(ring_seconds(small), 6 * 0.2));
  QVERIFY(close_to(direct_seconds(small), 1.15 * 6 * 0.1 + 1.5 * 0.4));
  QVERIFY(close_to(ring_seconds(large), 6 * 10.0));
  QVERIFY(close_to(direct_seconds(large), 1.15 * 6 * 10 + 1.5 * 0.4));

  const double r = recoveries(1e6 / 1448, 0.01);
  const ScheduleQuestion lossy = question(4, 4e6, 10e6, 0.4, 0.01);
  QVERIFY(close_to(ring_seconds(lossy), 6 * (0.2 + 0.4 * r)));
  QVERIFY(close_to(direct_seconds(lossy), 1.15 * 6 * 0.1 + (1.5 + 2 * r) * 0.4));
  // Bytes hide a hop's delay, and not what is lost at its end.
  const double of_a_large_one = recoveries(100e6 / 1448, 0.01);
  QVERIFY(close_to(ring_seconds(question(4, 400e6, 10e6, 0.4, 0.01)), 6 * (10 + 0.4 * of_a_large_one)));
}

void ScheduleChoiceTest::what_delays_go_directly_and_what_the_links_fill_goes_round_data() {
  QTest::addColumn<int>("islands");
  QTest::addColumn<double>("bytes");
  QTest::addColumn<double>("rtt");
  QTest::addColumn<double>("loss");
  QTest::addColumn<bool>("directly");
  QTest::newRow("small, far apart") << 8 << 8e6 << 0.3 << 0.0 << true;
  QTest::newRow("small, near") << 8 << 8e6 << 0.01 << 0.0 << false;
  QTest::newRow("large, far apart") << 8 << 800e6 << 0.3 << 0.0 << false;
  QTest::newRow("large, far apart, lossy") << 8 << 800e6 << 0.3 << 0.02 << false;
  QTest::newRow("so large that its delays count when packets are lost") << 8 << 40e6 << 0.3 << 0.01 << true;
  QTest::newRow("the same without loss") << 8 << 40e6 << 0.3 << 0.0 << false;
  QTest::newRow("64 MiB of float32 at a byte each, over an ocean that loses some")
      << 4 << 16.8e6 << 0.3 << 0.01 << true;
  QTest::newRow("the same among eight") << 8 << 16.8e6 << 0.3 << 0.01 << true;
  QTest::newRow("the same among four, without loss") << 4 << 16.8e6 << 0.3 << 0.0 << false;
  QTest::newRow("many, where hops add up") << 64 << 20e6 << 0.1 << 0.0 << true;
}

void ScheduleChoiceTest::what_delays_go_directly_and_what_the_links_fill_goes_round() {
  QFETCH(int, islands);
  QFETCH(double, bytes);
  QFETCH(double, rtt);
  QFETCH(double, loss);
  QFETCH(bool, directly);

  const Schedule chosen = choose_schedule(question(islands, bytes, 12.5e6, rtt, loss), Schedule::kRing);

  QCOMPARE(chosen, directly ? Schedule::kDirect : Schedule::kRing);
}

void ScheduleChoiceTest::an_exchange_is_given_up_only_where_the_ring_is_faster() {
  // 6 * 0.2 s round the ring.
  const ScheduleQuestion slightly = question(4, 4 * 0.075 * 10e6, 10e6, 0.4),
                         not_at_all = question(4, 4 * 0.1 * 10e6, 10e6, 0.4);
  QVERIFY(direct_seconds(slightly) < ring_seconds(slightly));
  QVERIFY(direct_seconds(slightly) > 0.9 * ring_seconds(slightly));

  QCOMPARE(choose_schedule(slightly, Schedule::kRing), Schedule::kRing);
  QCOMPARE(choose_schedule(slightly, Schedule::kDirect), Schedule::kDirect);
  QCOMPARE(choose_schedule(not_at_all, Schedule::kDirect), Schedule::kRing);
}

void ScheduleChoiceTest::a_gain_of_moments_changes_nothing() {
  QCOMPARE(choose_schedule(question(8, 1e3, 1e9, 0.001), Schedule::kRing), Schedule::kRing);
  QCOMPARE(choose_schedule(question(8, 1e3, 1e9, 0.1), Schedule::kRing), Schedule::kDirect);
}

void ScheduleChoiceTest::the_ring_is_judged_by_its_own_edges_and_an_exchange_by_the_worst_pair() {
  const auto order = members(4);
  LinkMatrix links = all_measured(order);
  // Of the two pairs that are no neighbours: slow, far, lossy. Of one that is: a little.
  for (int twice = 0; twice < 2; ++twice) {
    links.report({order[0].id, order[2].id, 1e3, 0.9, false, 0.1}, kStart + hours(1));
    links.report({order[1].id, order[2].id, 10e6, 0.6, false, 0.001}, kStart + hours(1));
  }

  const auto asked = schedule_question(order, 5e6, links, kStart + hours(1));

  QVERIFY(asked.has_value());
  QCOMPARE(asked->islands, 4);
  QCOMPARE(asked->bytes, 5e6);
  QCOMPARE(asked->ring.slowest_bytes_per_second, 10e6);
  QVERIFY(close_to(asked->ring.rtt_seconds, (3 * 0.2 + 0.6) / 4));
  QCOMPARE(asked->ring.loss, 0.001);
  QVERIFY(asked->direct.slowest_bytes_per_second < 2e6);
  QCOMPARE(asked->direct.rtt_seconds, 0.9);
  QCOMPARE(asked->direct.loss, 0.1);
}

void ScheduleChoiceTest::an_exchange_among_few_or_strangers_or_the_unmeasured_is_out_of_the_question() {
  const auto order = members(4);
  const LinkMatrix known = all_measured(order);
  QVERIFY(schedule_question(order, 5e6, known, kStart).has_value());

  QVERIFY(!schedule_question({}, 5e6, known, kStart));
  QVERIFY(!schedule_question(members(2), 5e6, known, kStart));
  QVERIFY(!schedule_question(order, 0, known, kStart));
  QVERIFY(!schedule_question(order, 5e6, LinkMatrix(), kStart));
  QVERIFY(!schedule_question(members(5), 5e6, known, kStart));  // one never met the others
  QVERIFY(!schedule_question(order, 5e6, known, kStart + hours(7)));
  LinkMatrix dead = known;
  dead.declare_dead(order[0].id, order[2].id, kStart);
  QVERIFY(!schedule_question(order, 5e6, dead, kStart));
  const auto many = members(129);
  QVERIFY(!schedule_question(many, 5e6, all_measured(many), kStart));
}

void ScheduleChoiceTest::a_pair_measured_one_way_has_met_and_a_member_that_never_sent_is_not_believed() {
  const auto order = members(3);
  LinkMatrix links;
  links.report({order[0].id, order[1].id, 10e6, 0.2, false}, kStart);
  links.report({order[1].id, order[2].id, 10e6, 0.2, false}, kStart);
  links.report({order[0].id, order[2].id, 10e6, 0.2, false}, kStart);
  QVERIFY(!schedule_question(order, 5e6, links, kStart));  // nobody knows what the last one's upload carries

  links.report({order[2].id, order[0].id, 1e6, 0, true}, kStart);

  const auto asked = schedule_question(order, 5e6, links, kStart);
  QVERIFY(asked.has_value());
  QCOMPARE(asked->direct.slowest_bytes_per_second, 1e6);
}

void ScheduleChoiceTest::one_that_nobody_can_dial_comes_first_and_keeps_its_neighbours() {
  auto order = members(4);
  LinkMatrix links = all_measured(order);
  links.set_dialable(order[2].id, false);
  QVERIFY(schedule_question(order, 5e6, links, kStart).has_value());

  begin_with_the_hidden(order, links);

  std::vector<std::string> ids;
  for (const AttemptMember& member : order) ids.push_back(member.id.value);
  QCOMPARE(ids, (std::vector<std::string>{"isl-2", "isl-3", "isl-0", "isl-1"}));
}

void ScheduleChoiceTest::two_that_nobody_can_dial_cannot_exchange() {
  const auto order = members(4);
  LinkMatrix links = all_measured(order);
  for (const int hidden : {0, 2}) links.set_dialable(order[static_cast<std::size_t>(hidden)].id, false);

  QVERIFY(!schedule_question(order, 5e6, links, kStart));
}

// By a word of the last member alone an exchange is chosen where it does not pay: whatever it says, the true times of
// the two differ by no more than the model's own terms.
void ScheduleChoiceTest::a_false_word_of_ones_own_links_costs_no_more_than_the_model_says() {
  const auto order = members(4);
  for (const double bytes : {1e5, 1e7, 1e9}) {
    const LinkMatrix honest = all_measured(order);
    const auto truth = schedule_question(order, bytes, honest, kStart);
    for (const double rate : {1e-3, 1.0, 1e6, 1e12}) {
      for (const double rtt : {1e-6, 0.2, 60.0}) {
        for (const double loss : {0.0, 1.0}) {
          LinkMatrix links = honest;
          for (std::size_t i = 0; i < 6; ++i) {
            links.report({order[3].id, order[i % 3].id, rate, rtt, false, loss}, kStart + hours(5));
            links.report({order[i % 3].id, order[3].id, rate, rtt, false, loss}, kStart + hours(5));
          }
          const auto asked = schedule_question(order, bytes, links, kStart + hours(5));
          if (!asked || choose_schedule(*asked, Schedule::kRing) == Schedule::kRing) continue;
          QVERIFY(direct_seconds(*truth) <= 1.15 * ring_seconds(*truth) + 1.5 * 0.2 + 1e-9);
        }
      }
    }
  }
}

void ScheduleChoiceTest::an_attempt_may_take_ten_times_what_its_slowest_link_needs() {
  const auto order = members(4);
  const auto ring_of = [&](double rate) {
    LinkMatrix links;
    for (std::size_t i = 0; i < 4; ++i) links.report({order[i].id, order[(i + 1) % 4].id, rate, 0.1}, kStart);
    return links;
  };
  LinkMatrix slow = ring_of(1e7);
  slow.report({order[0].id, order[2].id, 2e6, 0.1}, kStart);  // an exchange would use it

  const double delays = 2 * (2 * 3 * 0.1 / 2);
  QVERIFY(close_to(longest_seconds(order, 1e8, slow, kStart), 2 * 1e8 / 2e5 + delays));
  QVERIFY(close_to(longest_seconds(order, 1e8, ring_of(1e10), kStart),
                   2 * 1e8 / 12.5e6 + delays));  // encoding takes time, too
}

void ScheduleChoiceTest::what_nobody_measured_or_says_to_be_slower_is_taken_for_half_a_megabit() {
  const auto order = members(4);
  QCOMPARE(longest_seconds(order, 1e8, LinkMatrix(), kStart), 2 * 1e8 / 62.5e3);

  for (const double rate : {1e-3, 125e3}) {  // a liar's; an honest one's of 1 Mbit/s
    LinkMatrix links;
    for (std::size_t i = 0; i < 4; ++i) {
      links.report({order[i].id, order[(i + 1) % 4].id, i == 3 ? rate : 1e7, 0}, kStart);
    }
    QCOMPARE(longest_seconds(order, 1e8, links, kStart), 2 * 1e8 / 62.5e3);
  }
}

void ScheduleChoiceTest::an_edge_that_nobody_measured_is_taken_for_half_of_what_its_ends_do_with_others() {
  const auto order = members(4);
  LinkMatrix links;
  for (const auto& [from, to] : {std::pair{0, 1}, {1, 2}, {2, 3}, {3, 1}, {2, 0}}) {
    links.report({order[static_cast<std::size_t>(from)].id, order[static_cast<std::size_t>(to)].id, 1e7, 0}, kStart);
  }
  QCOMPARE(longest_seconds(order, 1e8, links, kStart), 2 * 1e8 / 5e5);

  LinkMatrix fewer;  // nothing that the last one sends was ever measured
  for (std::size_t i = 0; i < 3; ++i) fewer.report({order[i].id, order[i + 1].id, 1e7, 0}, kStart);
  QCOMPARE(longest_seconds(order, 1e8, fewer, kStart), 2 * 1e8 / 62.5e3);
}

// Where little is averaged by many a hop is as long as its delay, and as what is lost on it.
void ScheduleChoiceTest::a_long_ring_of_lossy_links_has_the_time_that_its_delays_take() {
  const auto order = members(128);
  LinkMatrix links;
  for (int time = 0; time < 2; ++time) {
    for (std::size_t i = 0; i < 128; ++i) {
      links.report({order[i].id, order[(i + 1) % 128].id, 1e7, 0.3, false, 0.01}, kStart);
    }
  }

  const double needed = ring_seconds(question(128, 1e7, 1e7, 0.3, 0.01)),
               longest = longest_seconds(order, 1e7, links, kStart);
  QVERIFY2(needed > 60, qPrintable(QString::number(needed)));
  QVERIFY2(longest >= needed, qPrintable(QString::number(longest)));

  // Who says that it is a minute away, and loses all, gains little.
  LinkMatrix lied;
  const auto four = members(4);
  for (std::size_t i = 0; i < 4; ++i)
    lied.report({four[i].id, four[(i + 1) % 4].id, 1e7, i < 2 ? 60 : 0.1, false, 1.0}, kStart);
  QVERIFY(longest_seconds(four, 1e7, lied, kStart) < 2 * 1e7 / 1e6 + 100);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::ScheduleChoiceTest)
#include "schedule_choice_test.moc"
