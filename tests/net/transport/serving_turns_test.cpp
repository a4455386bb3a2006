#include "net/transport/serving_turns.h"

#include <QtTest>
#include <map>
#include <random>

#include "net/transport/https_pace.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

using Ids = std::vector<ConnectionId>;
const IslandId kOne{"isl-1"}, kTwo{"isl-2"}, kThree{"isl-3"};
constexpr Clock::time_point kNow{};

ServingTurns of_four(std::size_t places_of_member = 4) {
  return ServingTurns({.places = 4,
                       .places_of_member = places_of_member,
                       .waiting = 4,
                       .waiting_of_member = 3,
                       .patience = 10s,
                       .idle_grace = 1s,
                       .fair_after = 3s});
}

}  // namespace

class ServingTurnsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void one_member_does_not_get_all_places();
  void who_waits_gets_the_place_of_one_that_ended();
  void who_waits_too_long_is_sent_away();
  void an_idle_connection_gives_its_place_up_when_it_is_wanted();
  void a_members_own_idle_connection_gives_way_to_its_next();
  void a_member_with_most_gives_a_place_to_one_without();
  void members_with_one_place_each_keep_them();
  void one_member_does_not_fill_the_waiting_places();
  void every_member_is_served_whatever_others_ask();
  void a_step_has_its_time_as_a_whole();
  void an_answer_may_be_slow_but_not_dead();
  void an_answer_that_still_leaves_is_not_idle();
};

void ServingTurnsTest::one_member_does_not_get_all_places() {
  ServingTurns turns = of_four(3);

  for (ConnectionId id = 1; id <= 3; ++id) QCOMPARE(turns.ask(id, kOne, kNow).begin, Ids{id});
  QVERIFY(turns.ask(4, kOne, kNow).begin.empty());

  QCOMPARE(turns.ask(5, kTwo, kNow).begin, Ids{5});
}

void ServingTurnsTest::who_waits_gets_the_place_of_one_that_ended() {
  ServingTurns turns = of_four();
  for (ConnectionId id = 1; id <= 4; ++id) (void)turns.ask(id, kOne, kNow);
  (void)turns.ask(5, kTwo, kNow);
  (void)turns.ask(6, kThree, kNow);

  QCOMPARE(turns.ended(2, kNow).begin, Ids{5});
  QCOMPARE(turns.ended(1, kNow).begin, Ids{6});
}

void ServingTurnsTest::who_waits_too_long_is_sent_away() {
  ServingTurns turns = of_four(1);
  (void)turns.ask(1, kOne, kNow);
  (void)turns.ask(2, kOne, kNow);

  QVERIFY(turns.at(kNow + 9s).end.empty());
  QCOMPARE(turns.at(kNow + 10s).end, Ids{2});
  QCOMPARE(turns.waiting(), std::size_t{0});
}

void ServingTurnsTest::an_idle_connection_gives_its_place_up_when_it_is_wanted() {
  ServingTurns turns = of_four();
  for (ConnectionId id = 1; id <= 4; ++id) (void)turns.ask(id, id < 3 ? kOne : kThree, kNow);
  turns.set_idle(2, kNow);
  turns.set_idle(3, kNow + 1s);
  QVERIFY(turns.at(kNow + 20s).end.empty());  // nobody wants it

  const auto change = turns.ask(5, kTwo, kNow + 20s);

  QCOMPARE(change.end, Ids{2});
  QCOMPARE(change.begin, Ids{5});
}

void ServingTurnsTest::a_members_own_idle_connection_gives_way_to_its_next() {
  ServingTurns turns = of_four(2);
  for (ConnectionId id = 1; id <= 2; ++id) (void)turns.ask(id, kOne, kNow);
  (void)turns.ask(3, kTwo, kNow);
  turns.set_idle(2, kNow);
  turns.set_idle(3, kNow);

  const auto change = turns.ask(4, kOne, kNow + 1s);

  QCOMPARE(change.end, Ids{2});
  QCOMPARE(change.begin, Ids{4});
}

void ServingTurnsTest::a_member_with_most_gives_a_place_to_one_without() {
  ServingTurns turns = of_four();
  for (ConnectionId id = 1; id <= 4; ++id) (void)turns.ask(id, id < 4 ? kOne : kThree, kNow);
  (void)turns.ask(5, kTwo, kNow);

  QVERIFY(turns.at(kNow + 2s).end.empty());
  const auto change = turns.at(kNow + 3s);

  QCOMPARE(change.end, Ids{3});  // its newest
  QCOMPARE(change.begin, Ids{5});
}

void ServingTurnsTest::members_with_one_place_each_keep_them() {
  ServingTurns turns = of_four();
  for (ConnectionId id = 1; id <= 4; ++id) (void)turns.ask(id, IslandId{std::to_string(id)}, kNow);
  (void)turns.ask(5, kOne, kNow);

  QVERIFY(turns.at(kNow + 9s).end.empty());
}

void ServingTurnsTest::one_member_does_not_fill_the_waiting_places() {
  ServingTurns turns = of_four(1);
  (void)turns.ask(1, kOne, kNow);
  for (ConnectionId id = 2; id <= 4; ++id) QVERIFY(turns.ask(id, kOne, kNow).end.empty());

  QCOMPARE(turns.ask(5, kOne, kNow).end, Ids{5});
  (void)turns.ask(6, kTwo, kNow);
  QVERIFY(turns.ask(7, kTwo, kNow).end.empty());
  QCOMPARE(turns.ask(8, kTwo, kNow).end, Ids{4});  // of the one that has most waiting
}

void ServingTurnsTest::every_member_is_served_whatever_others_ask() {
  std::mt19937 random(1);
  ServingTurns turns((ServingSizes()));
  std::map<ConnectionId, IslandId> held;
  ConnectionId last = 0;
  auto now = kNow;
  const auto learn = [&](const ServingTurns::Change& change) {
    for (const ConnectionId id : change.end) held.erase(id);
    return std::ranges::count(change.begin, last) > 0;
  };
  for (int i = 0; i < 2'000; ++i) {  // three members hold all that they get, busily
    ++last;
    held[last] = IslandId{std::to_string(random() % 3)};
    (void)learn(turns.ask(last, held[last], now += 10ms));
  }
  QVERIFY(held.size() <= ServingSizes().places + ServingSizes().waiting);

  for (int i = 0; i < 20; ++i) {
    const ConnectionId id = ++last;
    bool served = learn(turns.ask(id, IslandId{"late"}, now));
    for (int step = 0; step < 16 && !served; ++step) {
      const auto change = turns.at(now += 250ms);
      served = std::ranges::count(change.begin, id) > 0;
    }
    QVERIFY(served);
    (void)turns.ended(id, now);
  }
}

void ServingTurnsTest::a_step_has_its_time_as_a_whole() {
  HttpsPace pace({.idle = 30s, .header = 10s});
  pace.wait_for_request(kNow, 0);
  QVERIFY(!pace.is_over(kNow + 29s, 0, 0));
  QVERIFY(pace.is_over(kNow + 30s, 0, 0));

  pace.begin_header(kNow + 29s);

  QVERIFY(!pace.is_over(kNow + 38s, 0, 0));
  QVERIFY(pace.is_over(kNow + 39s, 0, 0));  // whatever came meanwhile
}

void ServingTurnsTest::an_answer_may_be_slow_but_not_dead() {
  HttpsPace pace({.window = 30s, .least_bytes = 1000});
  pace.begin_answer(kNow, 500);

  QVERIFY(!pace.is_over(kNow + 29s, 500, 9000));
  QVERIFY(!pace.is_over(kNow + 30s, 1500, 8000));
  QVERIFY(!pace.is_over(kNow + 59s, 1500, 8000));
  QVERIFY(pace.is_over(kNow + 60s, 2499, 7000));
}

void ServingTurnsTest::an_answer_that_still_leaves_is_not_idle() {
  HttpsPace pace({.idle = 10s, .window = 30s, .least_bytes = 1000});
  pace.begin_answer(kNow, 0);
  pace.wait_for_request(kNow + 1s, 0);

  QVERIFY(!pace.is_over(kNow + 20s, 900, 100));
  QVERIFY(!pace.is_idle());
  QVERIFY(!pace.is_over(kNow + 21s, 1000, 0));
  QVERIFY(pace.is_idle());
  QVERIFY(pace.is_over(kNow + 31s, 1000, 0));
}

QTEST_GUILESS_MAIN(ServingTurnsTest)
#include "serving_turns_test.moc"
