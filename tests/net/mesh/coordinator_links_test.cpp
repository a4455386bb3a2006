// What the hub knows of links: who is neighbour of whom, who dials, whom it asks to probe.
#include <QtTest>
#include <algorithm>
#include <cstdlib>

#include "tests/net/mesh/coordinator_script.h"

namespace atl {

class CoordinatorLinksTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_measured_ring_replaces_the_order_by_id();
  void a_dead_edge_of_four_is_avoided_and_nobody_sits_out();
  void two_islands_that_nobody_can_dial_are_not_neighbours_and_their_edges_say_who_dials();
  void islands_are_asked_to_probe_what_is_not_known_when_a_round_begins();
};

// Says of every edge between islands 1..n how fast it is.
template <class Rate>
void measure_links(SimulatedMesh& mesh, int islands, Rate rate) {
  for (int from = 1; from <= islands; ++from) {
    IslandLinkReport report;
    for (int to = 1; to <= islands; ++to) {
      if (from != to) report.links.push_back({mesh.island(to).id, true, rate(from, to), 0.1, false});
    }
    mesh.say(from, report);
  }
}

std::vector<IslandId> order_of(const HubAttempt& attempt) {
  std::vector<IslandId> ids;
  for (const AttemptMember& member : attempt.order) ids.push_back(member.id);
  return ids;
}

void CoordinatorLinksTest::a_measured_ring_replaces_the_order_by_id() {
  SimulatedMesh mesh(run_for(4));
  begin_first_round(mesh, 4);
  const auto id = [&](int number) { return mesh.island(number).id; };

  measure_links(mesh, 4, [](int from, int to) {
    return (from * 10 + to == 13 || from * 10 + to == 32 || from * 10 + to == 24 || from * 10 + to == 41) ? 50e6 : 1e6;
  });
  all_ready(mesh, 4);

  const auto attempts = received<HubAttempt>(mesh.island(1));
  QCOMPARE(attempts.size(), std::size_t{1});
  QCOMPARE(order_of(attempts[0]), (std::vector<IslandId>{id(1), id(3), id(2), id(4)}));
}

void CoordinatorLinksTest::a_dead_edge_of_four_is_avoided_and_nobody_sits_out() {
  SimulatedMesh mesh(run_for(4));
  begin_first_round(mesh, 4);
  all_ready(mesh, 4);

  for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
    mesh.say(1, IslandAttemptFailed{OuterStep{0}, Attempt{attempt}, mesh.island(2).id, "timeout"});
    mesh.pass(5s);
    for (int i = 1; i <= 4; ++i) mesh.say(i, IslandHeartbeat{});
    deliver(mesh);
  }

  const auto attempts = received<HubAttempt>(mesh.island(4));
  const std::vector<IslandId> order = order_of(attempts.back());
  QCOMPARE(order.size(), std::size_t{4});
  const auto at = [&](int number) { return std::ranges::find(order, mesh.island(number).id) - order.begin(); };
  QCOMPARE(std::abs(at(1) - at(2)), std::ptrdiff_t{2});
}

void CoordinatorLinksTest::two_islands_that_nobody_can_dial_are_not_neighbours_and_their_edges_say_who_dials() {
  SimulatedMesh mesh(run_for(4));
  begin_first_round(mesh, 4);
  for (const int hidden : {1, 2}) mesh.hub_hears(IslandDialled{mesh.island(hidden).id, false});

  all_ready(mesh, 4);

  const HubAttempt attempt = received<HubAttempt>(mesh.island(1)).back();
  QCOMPARE(attempt.order.size(), std::size_t{4});
  for (std::size_t r = 0; r < 4; ++r) {
    const bool hidden = attempt.order[r].id == mesh.island(1).id || attempt.order[r].id == mesh.island(2).id;
    QCOMPARE(attempt.order[r].dials_previous, hidden);
    QVERIFY(!(hidden && attempt.order[(r + 1) % 4].dials_previous));
  }
}

void CoordinatorLinksTest::islands_are_asked_to_probe_what_is_not_known_when_a_round_begins() {
  SimulatedMesh mesh(run_for(4));

  begin_first_round(mesh, 4);

  std::size_t probes = 0;
  for (int i = 1; i <= 4; ++i) {
    for (const HubProbe& probe : received<HubProbe>(mesh.island(i))) {
      QVERIFY(probe.from != mesh.island(i).id);
      ++probes;
    }
  }
  QCOMPARE(probes, std::size_t{2});  // two pairs: nobody is busy twice
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::CoordinatorLinksTest)
#include "coordinator_links_test.moc"
