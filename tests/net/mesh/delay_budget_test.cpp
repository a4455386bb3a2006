// What the others may wait for an island, and which edges rest.
#include "net/mesh/delay_budget.h"

#include <QtTest>

#include "net/mesh/edge_failures.h"

namespace atl {

using namespace std::chrono_literals;

namespace {

const IslandId kA{"a"}, kB{"b"}, kC{"c"}, kD{"d"};
constexpr Clock::time_point kStart{1h};

}  // namespace

class DelayBudgetTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_island_has_all_of_it_at_first();
  void who_is_waited_for_all_the_time_costs_one_part_in_n_data();
  void who_is_waited_for_all_the_time_costs_one_part_in_n();
  void who_owes_again_saves_half_as_fast();
  void a_long_good_time_ends_it();
  void it_says_how_long_a_debt_lasts();
  void a_debt_of_days_among_many_lasts_a_year_at_most();
  void an_edge_rests_after_three_failures_within_an_hour();
  void each_rest_is_twice_as_long();
  void an_old_rest_is_forgotten();
  void what_cost_much_is_remembered_for_longer_and_rests_for_longer();
  void f_liars_make_nobody_look_guilty_data();
  void f_liars_make_nobody_look_guilty();
  void the_ends_of_a_resting_edge_sit_out_by_turns();
  void an_unproven_end_sits_out_each_time();
  void an_end_that_is_doubted_sits_out_each_time();
};

void DelayBudgetTest::an_island_has_all_of_it_at_first() {
  DelayBudget budget(60s);
  budget.save(kStart, 3);

  budget.charge(kA, 59s);

  QVERIFY(!budget.is_spent(kA));
  budget.charge(kA, 1s);
  QVERIFY(budget.is_spent(kA) && !budget.owes(kA));
  budget.charge(kA, 1s);
  QVERIFY(budget.owes(kA));
  QCOMPARE(budget.left(kB), Clock::duration(60s));
}

void DelayBudgetTest::who_is_waited_for_all_the_time_costs_one_part_in_n_data() {
  QTest::addColumn<int>("islands");
  for (const int islands : {2, 3, 8, 14}) QTest::addRow("%d islands", islands) << islands;
}

void DelayBudgetTest::who_is_waited_for_all_the_time_costs_one_part_in_n() {
  QFETCH(int, islands);
  DelayBudget budget(60s);
  Clock::duration waited{};
  constexpr Clock::duration kTime = 10h, kTick = 250ms;
  for (Clock::duration passed{}; passed < kTime; passed += kTick) {
    budget.save(kStart + passed, static_cast<std::size_t>(islands));
    if (budget.is_spent(kA)) continue;
    budget.charge(kA, kTick);  // it is late whenever it may be
    waited += kTick;
  }

  const double share = Seconds(waited) / Seconds(kTime);
  QVERIFY(share <= 1.0 / islands + Seconds(60s) / Seconds(kTime) + 0.01);
  QVERIFY(share >= 0.9 / (islands + 1) / (1 << 5));  // it is never given up
}

void DelayBudgetTest::who_owes_again_saves_half_as_fast() {
  DelayBudget budget(60s);
  budget.save(kStart, 3);
  budget.charge(kA, 70s);
  budget.save(kStart + 40s, 3);
  QVERIFY(!budget.owes(kA));

  budget.charge(kA, 10s);
  budget.save(kStart + 80s, 3);
  QVERIFY(budget.owes(kA));
  budget.save(kStart + 120s, 3);

  QVERIFY(!budget.owes(kA));
}

void DelayBudgetTest::a_long_good_time_ends_it() {
  DelayBudget budget(60s);
  budget.save(kStart, 3);
  for (int i = 0; i < 3; ++i) budget.charge(kA, 61s), budget.save(kStart + (i + 1) * 1h, 3);

  budget.save(kStart + 10h, 3);
  budget.charge(kA, 61s);
  budget.save(kStart + 10h + 4s, 3);

  QVERIFY(!budget.owes(kA));
}

void DelayBudgetTest::it_says_how_long_a_debt_lasts() {
  DelayBudget budget(60s);
  budget.save(kStart, 3);
  budget.charge(kA, 70s);

  QCOMPARE(budget.until_paid(kA, 3), Clock::duration(40s));
  QCOMPARE(budget.until_paid(kB, 3), Clock::duration(0s));
}

void DelayBudgetTest::a_debt_of_days_among_many_lasts_a_year_at_most() {
  DelayBudget budget(48h);
  budget.save(kStart, 8192);
  budget.charge(kA, 48h * 20);

  QCOMPARE(budget.until_paid(kA, 8192), Clock::duration(std::chrono::years(1)));
}

// ---- edges

void DelayBudgetTest::an_edge_rests_after_three_failures_within_an_hour() {
  EdgeFailures edges;
  QVERIFY(!edges.failed(kA, kB, kStart));
  QVERIFY(!edges.failed(kB, kA, kStart + 1min));
  QVERIFY(!edges.failed(kA, kB, kStart + 60min + 1s));  // the first is forgotten

  QVERIFY(edges.failed(kA, kB, kStart + 60min + 2s));

  QVERIFY(!edges.failed(kA, kC, kStart + 60min + 2s));  // another edge
}

void DelayBudgetTest::each_rest_is_twice_as_long() {
  EdgeFailures edges;
  Clock::time_point now = kStart;

  QCOMPARE(edges.rest(kA, kB, now), Clock::duration(10min));
  QVERIFY(!edges.rests_again(kA, kB));
  now += 11min;
  QVERIFY(edges.failed(kA, kB, now));  // once is enough of one that has rested
  QCOMPARE(edges.rest(kB, kA, now), Clock::duration(20min));
  QVERIFY(edges.rests_again(kA, kB));
  now += 21min;
  QCOMPARE(edges.rest(kA, kB, now), Clock::duration(40min));
}

void DelayBudgetTest::an_old_rest_is_forgotten() {
  EdgeFailures edges;
  (void)edges.rest(kA, kB, kStart);

  QCOMPARE(edges.rest(kA, kB, kStart + 10min + 61min), Clock::duration(10min));
  QVERIFY(!edges.rests_again(kA, kB));
}

// Two of eight may fail three times with three others each: 18 minutes at a minute each, which are a tenth of 3 hours.
void DelayBudgetTest::what_cost_much_is_remembered_for_longer_and_rests_for_longer() {
  EdgeFailures edges;
  const FailureCost minute{1min, 8}, second{1s, 8};

  QVERIFY(!edges.failed(kA, kB, kStart, minute));
  QVERIFY(!edges.failed(kA, kB, kStart + 1h, second));
  QVERIFY(edges.failed(kA, kB, kStart + 3h, second));
  QCOMPARE(edges.rest(kA, kB, kStart + 3h), Clock::duration(30min));

  QVERIFY(!edges.failed(kA, kC, kStart, second));
  QVERIFY(!edges.failed(kA, kC, kStart + 61min, second));
  QVERIFY(!edges.failed(kA, kC, kStart + 62min, second));
  QCOMPARE(edges.rest(kA, kC, kStart + 62min), Clock::duration(10min));
}

void DelayBudgetTest::f_liars_make_nobody_look_guilty_data() {
  QTest::addColumn<int>("islands");
  QTest::addColumn<int>("liars");
  for (const auto& [islands, liars] : {std::pair(3, 1), {4, 1}, {7, 2}, {8, 2}, {14, 4}}) {
    QTest::addRow("%d of %d", liars, islands) << islands << liars;
  }
}

void DelayBudgetTest::f_liars_make_nobody_look_guilty() {
  QFETCH(int, islands);
  QFETCH(int, liars);
  const auto id = [](int island) { return IslandId{std::to_string(island)}; };
  EdgeFailures edges;
  for (int liar = 0; liar < liars; ++liar) {
    for (int honest = liars; honest < islands; ++honest) (void)edges.failed(id(liar), id(honest), kStart);
  }

  std::set<IslandId> all;
  for (int island = 0; island < islands; ++island) all.insert(id(island));
  for (int island = 0; island < islands; ++island) {
    const bool lies = island < liars && islands - liars > liars;
    QCOMPARE(edges.is_at_fault(id(island), all, kStart + 1min), lies);
  }
  QVERIFY(!edges.is_at_fault(id(0), all, kStart + 61min));
  // One that leaves makes fewer of them, and not the others guilty.
  all.erase(id(0));
  for (int honest = liars; honest < islands; ++honest) {
    QVERIFY(!edges.is_at_fault(id(honest), all, kStart + 1min));
  }
}

void DelayBudgetTest::the_ends_of_a_resting_edge_sit_out_by_turns() {
  EdgeFailures edges;
  (void)edges.rest(kA, kB, kStart);
  QVERIFY(!edges.is_its_turn(kA, kStart) && !edges.is_its_turn(kB, kStart));

  for (int round = 1; round < EdgeFailures::kTurn; ++round) {
    edges.sat_out(kA, kStart);
    QVERIFY(edges.is_its_turn(kA, kStart) && !edges.is_its_turn(kB, kStart));
  }
  edges.sat_out(kA, kStart);
  QVERIFY(!edges.is_its_turn(kA, kStart) && edges.is_its_turn(kB, kStart));
  for (int round = 1; round < EdgeFailures::kTurn; ++round) {
    edges.sat_out(kB, kStart);
    QVERIFY(!edges.is_its_turn(kA, kStart) && edges.is_its_turn(kB, kStart));
  }
  edges.sat_out(kB, kStart);

  QVERIFY(edges.is_its_turn(kA, kStart) && !edges.is_its_turn(kB, kStart));
  QVERIFY(!edges.is_its_turn(kD, kStart));
  QVERIFY(!edges.is_its_turn(kA, kStart + 61min));
}

// While nothing was accepted of one end, and of the other there was.
void DelayBudgetTest::an_unproven_end_sits_out_each_time() {
  EdgeFailures edges;
  (void)edges.failed(kA, kB, kStart, {}, kB);
  (void)edges.failed(kA, kB, kStart);
  (void)edges.rest(kA, kB, kStart);

  for (int round = 0; round < 3 * EdgeFailures::kTurn; ++round) {
    QVERIFY(edges.is_its_turn(kB, kStart) && !edges.is_its_turn(kA, kStart));
    edges.sat_out(kB, kStart);
  }
}

void DelayBudgetTest::an_end_that_is_doubted_sits_out_each_time() {
  EdgeFailures edges;
  (void)edges.rest(kA, kB, kStart);
  edges.sat_out(kA, kStart);

  edges.doubt(kB, kStart);

  QVERIFY(edges.is_its_turn(kB, kStart) && !edges.is_its_turn(kA, kStart));
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::DelayBudgetTest)
#include "delay_budget_test.moc"
