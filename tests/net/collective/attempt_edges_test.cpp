// Who dials whom in an attempt, by the order of its members, who of them can be dialled, and the schedule.
#include "net/collective/attempt_edges.h"

#include <QtTest>
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

using namespace atl;

namespace {

// As a hub orders them: an island that nobody can dial dials the one before it.
std::vector<RingMember> members(std::size_t count, const std::vector<std::size_t>& hidden = {}) {
  std::vector<RingMember> order(count);
  for (std::size_t rank = 0; rank < count; ++rank) order[rank].id.value = "isl-" + std::to_string(rank);
  for (const std::size_t rank : hidden) order[rank].dials_previous = true;
  return order;
}

constexpr auto kSends = RingRole::kSends, kReceives = RingRole::kReceives, kExchanges = RingRole::kExchange;

RingRole other_end(RingRole role) {
  if (role == kExchanges) return role;
  return role == kSends ? kReceives : kSends;
}

// Both ends of each edge know of it, and one of them dials.
void verify_one_end_dials_each(const std::vector<RingMember>& order, Schedule schedule) {
  std::map<std::tuple<std::size_t, std::size_t, RingRole>, bool> ends;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    for (const AttemptEdge& edge : edges_of(order, schedule, rank)) {
      QVERIFY(edge.peer < order.size() && edge.peer != rank);
      QVERIFY2((ends.emplace(std::tuple(rank, edge.peer, edge.role), edge.is_dialled).second), "the same edge twice");
    }
  }
  for (const auto& [end, is_dialled] : ends) {
    const auto& [rank, peer, role] = end;
    const auto other = ends.find({peer, rank, other_end(role)});
    QVERIFY(other != ends.end());
    QCOMPARE(other->second, !is_dialled);
  }
}

std::size_t count_dialled(const std::vector<AttemptEdge>& edges) {
  return static_cast<std::size_t>(
      std::ranges::count_if(edges, [](const AttemptEdge& edge) { return edge.is_dialled; }));
}

}  // namespace

Q_DECLARE_METATYPE(std::vector<std::size_t>)
Q_DECLARE_METATYPE(atl::Schedule)

class AttemptEdgesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void one_end_of_each_edge_dials_data();
  void one_end_of_each_edge_dials();
  void in_a_ring_each_dials_the_next();
  void who_cannot_be_dialled_dials_both_its_neighbours_in_a_ring();
  void of_two_that_cannot_be_dialled_the_later_dials();
  void two_share_two_edges();
  void who_knows_its_neighbours_alone_knows_its_edges();
  void in_an_exchange_the_lower_rank_dials_whoever_is_hidden();
};

void AttemptEdgesTest::one_end_of_each_edge_dials_data() {
  QTest::addColumn<Schedule>("schedule");
  QTest::addColumn<std::size_t>("count");
  QTest::addColumn<std::vector<std::size_t>>("hidden");
  for (const Schedule schedule : {Schedule::kRing, Schedule::kDirect}) {
    const auto row = [&](const char* name, std::size_t count, std::vector<std::size_t> hidden) {
      QTest::addRow("%s, %s", schedule == Schedule::kRing ? "ring" : "exchange", name) << schedule << count << hidden;
    };
    row("two", 2, {});
    row("two, the second hidden", 2, {1});
    row("two, both hidden", 2, {0, 1});
    row("three", 3, {});
    row("four, every other one hidden", 4, {0, 2});
    row("five, two hidden next to each other", 5, {2, 3});
    row("128", 128, {});
    row("128, the first and the last hidden", 128, {0, 127});
  }
}

void AttemptEdgesTest::one_end_of_each_edge_dials() {
  QFETCH(Schedule, schedule);
  QFETCH(std::size_t, count);
  QFETCH(std::vector<std::size_t>, hidden);

  const std::vector<RingMember> order = members(count, hidden);

  verify_one_end_dials_each(order, schedule);
  for (std::size_t rank = 0; rank < count; ++rank) {
    QCOMPARE(edges_of(order, schedule, rank).size(), schedule == Schedule::kRing ? std::size_t{2} : count - 1);
  }
}

void AttemptEdgesTest::in_a_ring_each_dials_the_next() {
  const std::vector<RingMember> order = members(128);

  QCOMPARE(edges_of(order, Schedule::kRing, 127),
           (std::vector<AttemptEdge>{{0, kSends, true}, {126, kReceives, false}}));
}

void AttemptEdgesTest::who_cannot_be_dialled_dials_both_its_neighbours_in_a_ring() {
  const std::vector<RingMember> order = members(4, {0, 2});

  for (const std::size_t hidden : {0u, 2u}) QCOMPARE(count_dialled(edges_of(order, Schedule::kRing, hidden)), 2u);
  for (const std::size_t other : {1u, 3u}) QCOMPARE(count_dialled(edges_of(order, Schedule::kRing, other)), 0u);
}

void AttemptEdgesTest::of_two_that_cannot_be_dialled_the_later_dials() {
  const std::vector<RingMember> order = members(5, {2, 3});

  QCOMPARE(edges_of(order, Schedule::kRing, 2), (std::vector<AttemptEdge>{{3, kSends, false}, {1, kReceives, true}}));
  QCOMPARE(edges_of(order, Schedule::kRing, 3), (std::vector<AttemptEdge>{{4, kSends, true}, {2, kReceives, true}}));
}

void AttemptEdgesTest::two_share_two_edges() {
  const std::vector<RingMember> order = members(2, {1});

  QCOMPARE(edges_of(order, Schedule::kRing, 0), (std::vector<AttemptEdge>{{1, kSends, false}, {1, kReceives, false}}));
  QCOMPARE(edges_of(order, Schedule::kRing, 1), (std::vector<AttemptEdge>{{0, kSends, true}, {0, kReceives, true}}));
}

void AttemptEdgesTest::who_knows_its_neighbours_alone_knows_its_edges() {
  const std::vector<RingMember> all = members(6, {1, 4});
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const std::vector<RingMember> own{all[(rank + 5) % 6], all[rank], all[(rank + 1) % 6]};

    const std::vector<AttemptEdge> edges = edges_of(own, Schedule::kRing, 1);

    const std::vector<AttemptEdge> of_all = edges_of(all, Schedule::kRing, rank);
    QCOMPARE(edges.size(), of_all.size());
    for (std::size_t i = 0; i < edges.size(); ++i) {
      QCOMPARE(own[edges[i].peer].id, all[of_all[i].peer].id);
      QCOMPARE(edges[i].role, of_all[i].role);
      QCOMPARE(edges[i].is_dialled, of_all[i].is_dialled);
    }
  }
}

void AttemptEdgesTest::in_an_exchange_the_lower_rank_dials_whoever_is_hidden() {
  const std::vector<RingMember> order = members(4, {0, 2});

  QCOMPARE(edges_of(order, Schedule::kDirect, 2),
           (std::vector<AttemptEdge>{{0, kExchanges, false}, {1, kExchanges, false}, {3, kExchanges, true}}));
  for (std::size_t rank = 0; rank < 128; ++rank) {
    QCOMPARE(count_dialled(edges_of(members(128, {0, 127}), Schedule::kDirect, rank)), 127 - rank);
  }
}

QTEST_APPLESS_MAIN(AttemptEdgesTest)
#include "attempt_edges_test.moc"
