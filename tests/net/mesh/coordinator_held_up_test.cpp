// How long the hub lets an attempt take, and whom it does without when somebody holds it up.
#include <QtTest>
#include <algorithm>

#include "tests/net/mesh/schedule_script.h"

namespace atl {
namespace {

// Islands 1..n have trained, over links of 400 Mbit/s, and average round the ring.
void begin_ring(SimulatedMesh& mesh, int islands) {
  begin_first_round(mesh, islands);
  measure_links(
      mesh, islands, [](int, int) { return 50e6; }, 0.0);
  all_ready(mesh, islands);
  mesh.trains_by_itself = false;
}

int number_of(SimulatedMesh& mesh, const IslandId& id) {
  for (auto& [number, island] : mesh.islands()) {
    if (island.id == id) return number;
  }
  return 0;
}

void pass_seconds(SimulatedMesh& mesh, int seconds) {
  for (int i = 0; i < seconds; ++i) mesh.pass(1s);
}

// Within so many seconds it is ended, and the members say how much had come to each: to that behind `slow` next to
// nothing, and to `liar`, it says, nothing at all.
void hold_up(SimulatedMesh& mesh, int seconds, int slow, int liar = 0) {
  deliver(mesh);
  const HubAttempt attempt = attempts(mesh, slow).back();
  const int failed = mesh.count<AttemptFailed>();
  for (int i = 0; i < seconds && mesh.count<AttemptFailed>() == failed; ++i) mesh.pass(1s);
  for (std::size_t rank = 0; rank < attempt.order.size(); ++rank) {
    const IslandId& previous = attempt.order[(rank + attempt.order.size() - 1) % attempt.order.size()].id;
    const int reporter = number_of(mesh, attempt.order[rank].id);
    const std::uint64_t bytes = reporter == liar ? 0 : previous == mesh.island(slow).id ? 30 : 1000 * (rank + 1);
    mesh.say(reporter, IslandAttemptFailed{OuterStep{0}, attempt.attempt, previous, "aborted", {}, false, bytes});
  }
  deliver(mesh);
}

bool are_neighbours(const HubAttempt& attempt, const IslandId& a, const IslandId& b) {
  const auto order = order_of(attempt);
  const auto at = [&](const IslandId& id) { return std::ranges::find(order, id) - order.begin(); };
  const auto distance = std::abs(at(a) - at(b));
  return distance == 1 || distance == std::ssize(order) - 1;
}

}  // namespace

class CoordinatorHeldUpTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void one_that_holds_up_two_edges_sits_the_round_out();
  void of_two_one_sits_out_and_of_three_the_one_that_holds_up_both_others();
  void an_exchange_that_is_held_up_goes_on_round_the_ring();
  void who_says_at_once_that_it_has_the_average_holds_it_up_no_longer();
  void two_that_lie_about_what_came_leave_out_one_of_them();
  void a_slow_link_that_is_known_holds_nothing_up_and_so_does_one_that_nobody_measured();
  void who_answers_nothing_when_an_attempt_is_held_up_sits_out();
  void a_link_that_has_got_slow_gets_the_time_that_it_needs_and_costs_nobody_its_part();
  void what_averages_took_of_late_says_how_long_the_next_may_take();
  void who_says_each_time_that_much_had_come_to_it_holds_up_two_attempts();
  void one_that_holds_up_edges_that_nobody_measured_does_so_no_longer();
};

void CoordinatorHeldUpTest::one_that_holds_up_two_edges_sits_the_round_out() {
  SimulatedMesh mesh(run_for(4), small_fragments(1));
  begin_ring(mesh, 4);
  const auto first = order_of(attempts(mesh).back());
  const int slow = number_of(mesh, first[1]);
  pass_seconds(mesh, 59);
  QCOMPARE(mesh.count<AttemptFailed>(), 0);

  hold_up(mesh, 3, slow);

  const HubAttempt second = attempts(mesh).back();
  QCOMPARE(second.attempt, Attempt{2});
  QCOMPARE(second.order.size(), std::size_t{4});
  QVERIFY(!are_neighbours(second, first[1], first[2]));

  hold_up(mesh, 125, slow);  // it may take twice as long: the others are perhaps all as slow

  const int other = slow == 1 ? 2 : 1;
  const HubAttempt third = attempts(mesh, other).back();
  QCOMPARE(third.attempt, Attempt{3});
  QCOMPARE(third.order.size(), std::size_t{3});
  QVERIFY(!has(order_of(third), first[1]));
  for (int i = 1; i <= 4; ++i) {
    if (i != slow) have(mesh, i, 3);
  }
  QCOMPARE(mesh.hub().committed(), OuterStep{1});
  QVERIFY(!mesh.island(slow).goodbye);
}

void CoordinatorHeldUpTest::of_two_one_sits_out_and_of_three_the_one_that_holds_up_both_others() {
  SimulatedMesh two(run_for(2), small_fragments(1)), three(run_for(3), small_fragments(1));
  begin_ring(two, 2);
  hold_up(two, 62, 2);
  QCOMPARE(attempts(two).back().order.size(), std::size_t{1});

  begin_ring(three, 3);
  hold_up(three, 62, 1);
  const auto left = order_of(attempts(three).back());
  QCOMPARE(left.size(), std::size_t{2});
  QVERIFY(has(left, three.island(1).id));  // of equals the later one goes first
  hold_up(three, 125, 1);

  const int other = number_of(three, left[0] == three.island(1).id ? left[1] : left[0]);
  const auto last = order_of(attempts(three, other).back());
  QCOMPARE(last.size(), std::size_t{2});
  QVERIFY(!has(last, three.island(1).id));
  QVERIFY(!three.island(1).goodbye);
}

void CoordinatorHeldUpTest::an_exchange_that_is_held_up_goes_on_round_the_ring() {
  SimulatedMesh mesh(run_for(4), small_fragments(1));
  begin_directly(mesh, 4);
  mesh.trains_by_itself = false;

  pass_seconds(mesh, 65);
  QCOMPARE(mesh.count<AttemptFailed>(), 1);
  for (int i = 1; i <= 4; ++i) answer(mesh, i, 1);
  deliver(mesh);

  QCOMPARE(schedules(mesh), (std::vector{kDirect, kRing}));
  QCOMPARE(attempts(mesh).back().order.size(), std::size_t{4});
}

// Of 30 MB, which may take 72 s: a false word ends the first attempt after 60 s, which tells of nobody.
void CoordinatorHeldUpTest::who_says_at_once_that_it_has_the_average_holds_it_up_no_longer() {
  SimulatedMesh mesh(run_for(4), {30'000'000});
  begin_ring(mesh, 4);
  const int slow = number_of(mesh, order_of(attempts(mesh).back())[1]);
  const int other = slow == 1 ? 2 : 1;

  for (std::uint32_t attempt = 1; attempt <= 8 && attempts(mesh, other).back().order.size() == 4; ++attempt) {
    have(mesh, slow, attempt, std::string(64, 'e'));
    hold_up(mesh, 1000, slow);
  }

  const auto last = order_of(attempts(mesh, other).back());
  QCOMPARE(last.size(), std::size_t{3});
  QVERIFY(!has(last, mesh.island(slow).id));
}

// One holds up the attempt, the other says each time that nothing came of its honest neighbour.
void CoordinatorHeldUpTest::two_that_lie_about_what_came_leave_out_one_of_them() {
  SimulatedMesh mesh(run_for(4), small_fragments(1));
  begin_ring(mesh, 4);
  const auto first = order_of(attempts(mesh).back());
  const int slow = number_of(mesh, first[0]), liar = number_of(mesh, first[2]), honest = number_of(mesh, first[1]);

  hold_up(mesh, 62, slow, liar);
  QCOMPARE(attempts(mesh, honest).back().order.size(), std::size_t{4});
  hold_up(mesh, 125, slow, liar);

  const auto last = order_of(attempts(mesh, honest).back());
  QCOMPARE(last.size(), std::size_t{3});
  QVERIFY(!has(last, mesh.island(liar).id));
}

// 10 MB over 1 Mbit/s take 120 to 160 s.
void CoordinatorHeldUpTest::a_slow_link_that_is_known_holds_nothing_up_and_so_does_one_that_nobody_measured() {
  for (const bool known : {true, false}) {
    SimulatedMesh mesh(run_for(4), {10'000'000});
    begin_first_round(mesh, 4);
    if (known) {
      measure_links(
          mesh, 4, [](int from, int to) { return from == 3 || to == 3 ? 125e3 : 62.5e6; }, 0.0);
    }
    all_ready(mesh, 4);
    mesh.trains_by_itself = false;

    pass_seconds(mesh, 300);

    QCOMPARE(mesh.count<AttemptFailed>(), 0);
    pass_seconds(mesh, 100);
    QCOMPARE(mesh.count<AttemptFailed>(), 1);
  }
}

void CoordinatorHeldUpTest::who_answers_nothing_when_an_attempt_is_held_up_sits_out() {
  SimulatedMesh mesh(run_for(4), small_fragments(1));
  begin_ring(mesh, 4);

  pass_seconds(mesh, 62);
  for (int i = 1; i <= 3; ++i) answer(mesh, i, 1);
  pass_seconds(mesh, 7);
  deliver(mesh);

  const auto last = order_of(attempts(mesh).back());
  QCOMPARE(last.size(), std::size_t{3});
  QVERIFY(!has(last, mesh.island(4).id));
}

// The owner limits an island to 1 Mbit/s in mid-run: 100 MB take 1,600 s instead of 16. Nothing else measures the one
// link of two; of four, every member would have to sit out.
void CoordinatorHeldUpTest::a_link_that_has_got_slow_gets_the_time_that_it_needs_and_costs_nobody_its_part() {
  for (const int islands : {2, 4}) {
    SimulatedMesh mesh(run_for(static_cast<std::uint32_t>(islands)), {100'000'000});
    begin_first_round(mesh, islands);
    measure_links(mesh, islands, [](int, int) { return 12.5e6; });
    all_ready(mesh, islands);
    mesh.trains_by_itself = false;

    const HubAttempt first = attempts(mesh).back();
    int lasted = 0;
    for (; lasted < 1000 && mesh.count<AttemptFailed>() == 0; ++lasted) mesh.pass(1s);
    QVERIFY(lasted < 300);
    for (std::size_t rank = 0; rank < first.order.size(); ++rank) {
      const std::size_t before = (rank + first.order.size() - 1) % first.order.size();
      const auto bytes = static_cast<std::uint64_t>(lasted) * 125'000 + 1000 * rank;
      mesh.say(number_of(mesh, first.order[rank].id),
               IslandAttemptFailed{OuterStep{0}, first.attempt, first.order[before].id, "aborted", {}, false, bytes});
    }
    deliver(mesh);

    QCOMPARE(attempts(mesh).back().attempt, Attempt{2});
    QCOMPARE(attempts(mesh).back().order.size(), static_cast<std::size_t>(islands));
    pass_seconds(mesh, 1600);
    QCOMPARE(mesh.count<AttemptFailed>(), 1);
    for (int i = 1; i <= islands; ++i) have(mesh, i, 2);
    QCOMPARE(mesh.commits().size(), std::size_t{1});
    QCOMPARE(mesh.commits().back().members.size(), static_cast<std::size_t>(islands));

    // Nor does the next round cost anybody anything.
    deliver(mesh);
    all_ready(mesh, islands);
    QCOMPARE(attempts(mesh).back().round, OuterStep{1});
    pass_seconds(mesh, 1600);
    QCOMPARE(mesh.count<AttemptFailed>(), 1);
  }
}

// Whatever members say of their links: 100 MB over 1 Mbit/s would have 1,600 s.
void CoordinatorHeldUpTest::what_averages_took_of_late_says_how_long_the_next_may_take() {
  SimulatedMesh mesh(run_for(4), {100'000'000});
  begin_first_round(mesh, 4);
  measure_links(
      mesh, 4, [](int from, int to) { return from == 3 || to == 3 ? 125e3 : 50e6; }, 0.0);
  all_ready(mesh, 4);
  mesh.trains_by_itself = false;
  pass_seconds(mesh, 20);
  for (int i = 1; i <= 4; ++i) have(mesh, i, 1);
  deliver(mesh);
  QCOMPARE(mesh.commits().size(), std::size_t{1});
  all_ready(mesh, 4);
  QCOMPARE(attempts(mesh).back().round, OuterStep{1});

  pass_seconds(mesh, 95);

  QCOMPARE(mesh.count<AttemptFailed>(), 0);
  pass_seconds(mesh, 10);
  QCOMPARE(mesh.count<AttemptFailed>(), 1);
}

// It takes little of what the other sends, which waits for nothing itself.
void CoordinatorHeldUpTest::who_says_each_time_that_much_had_come_to_it_holds_up_two_attempts() {
  for (const std::uint64_t bytes : {std::uint64_t{40'000'000}, ~std::uint64_t{0}}) {
    SimulatedMesh mesh(run_for(2), {100'000'000});
    begin_first_round(mesh, 2);
    measure_links(mesh, 2, [](int, int) { return 12.5e6; });
    all_ready(mesh, 2);
    mesh.trains_by_itself = false;

    for (std::uint32_t attempt = 1; attempt <= 2; ++attempt) {
      const int failed = mesh.count<AttemptFailed>();
      for (int i = 0; i < 10'000 && mesh.count<AttemptFailed>() == failed; ++i) mesh.pass(1s);
      answer(mesh, 1, attempt);
      mesh.say(2, IslandAttemptFailed{OuterStep{0}, Attempt{attempt}, mesh.island(1).id, "aborted", {}, false, bytes});
      deliver(mesh);
    }

    QCOMPARE(attempts(mesh).back().order.size(), std::size_t{1});
  }
}

// Only the links of rings were measured. What those know of an edge's ends says what it may take.
void CoordinatorHeldUpTest::one_that_holds_up_edges_that_nobody_measured_does_so_no_longer() {
  SimulatedMesh mesh(run_for(4), {100'000'000});
  begin_first_round(mesh, 4);
  for (int i = 1; i <= 4; ++i) {
    mesh.say(i, IslandLinkReport{{{mesh.island(i % 4 + 1).id, true, 12.5e6, 0.1, false}}});
  }
  all_ready(mesh, 4);
  mesh.trains_by_itself = false;
  const int slow = 2;

  hold_up(mesh, 300, slow);
  const HubAttempt second = attempts(mesh).back();
  QCOMPARE(second.attempt, Attempt{2});
  hold_up(mesh, 800, slow);

  const auto last = order_of(attempts(mesh).back());
  QCOMPARE(last.size(), std::size_t{3});
  QVERIFY(!has(last, mesh.island(slow).id));
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::CoordinatorHeldUpTest)
#include "coordinator_held_up_test.moc"
