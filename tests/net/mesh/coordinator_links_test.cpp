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
  void an_attempt_tells_of_each_edge_what_is_known_of_it();
  void a_dead_edge_of_four_is_avoided_and_nobody_sits_out();
  void an_edge_that_both_ends_found_silent_is_avoided_by_the_next_attempt();
  void an_edge_that_one_end_found_silent_is_avoided_where_a_ring_can_data();
  void an_edge_that_one_end_found_silent_is_avoided_where_a_ring_can();
  void nobody_sits_out_at_once_for_an_edge_that_no_ring_can_avoid();
  void two_islands_that_nobody_can_dial_are_not_neighbours_and_their_edges_say_who_dials();
  void below_8_bits_an_attempt_with_a_member_that_nobody_can_dial_is_int8();
  void an_island_is_dialled_when_it_joins_and_when_its_address_changes();
  void the_answer_of_an_address_that_it_left_says_nothing();
  void who_could_not_be_dialled_is_dialled_again_now_and_then();
  void one_of_three_sits_out_when_two_cannot_be_dialled_until_one_of_them_can();
  void a_hub_that_restarts_knows_no_links_and_learns_them_again();
  void an_edge_that_was_dead_is_tried_again_after_a_while();
  void islands_are_asked_to_probe_what_is_not_known_when_a_round_begins();
};

IslandAttemptFailed silent_edge(SimulatedMesh& mesh, std::uint32_t attempt, int peer) {
  return {OuterStep{0}, Attempt{attempt}, mesh.island(peer).id, "timeout", {}, /*silent=*/true};
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
  QCOMPARE(attempts[0].edge_bytes_per_second, (std::vector<double>{50e6, 50e6, 50e6, 50e6}));
}

void CoordinatorLinksTest::an_attempt_tells_of_each_edge_what_is_known_of_it() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  all_ready(mesh, 3);
  QVERIFY(received<HubAttempt>(mesh.island(1)).at(0).edge_bytes_per_second.empty());  // nobody measured anything

  mesh.say(1, IslandLinkReport{{{mesh.island(2).id, true, 3e6, 0.1, false}}});
  mesh.say(1, IslandAttemptFailed{OuterStep{0}, Attempt{1}, std::nullopt, "reset"});
  for (int i = 2; i <= 3; ++i) mesh.say(i, IslandAttemptFailed{OuterStep{0}, Attempt{1}, std::nullopt, "aborted"});
  deliver(mesh);

  const HubAttempt second = received<HubAttempt>(mesh.island(1)).at(1);
  const auto order = order_of(second);
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const bool measured = order[rank] == mesh.island(1).id && order[(rank + 1) % 3] == mesh.island(2).id;
    QCOMPARE(second.edge_bytes_per_second.at(rank), measured ? 3e6 : 0.0);
  }
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

void CoordinatorLinksTest::an_edge_that_both_ends_found_silent_is_avoided_by_the_next_attempt() {
  SimulatedMesh mesh(run_for(4));
  begin_first_round(mesh, 4);
  all_ready(mesh, 4);

  mesh.say(1, silent_edge(mesh, 1, 2));
  mesh.say(2, silent_edge(mesh, 1, 1));
  deliver(mesh);

  const std::vector<IslandId> order = order_of(received<HubAttempt>(mesh.island(4)).back());
  QCOMPARE(received<HubAttempt>(mesh.island(4)).size(), std::size_t{2});
  QCOMPARE(order.size(), std::size_t{4});
  const auto at = [&](int number) { return std::ranges::find(order, mesh.island(number).id) - order.begin(); };
  QCOMPARE(std::abs(at(1) - at(2)), std::ptrdiff_t{2});
}

void CoordinatorLinksTest::an_edge_that_one_end_found_silent_is_avoided_where_a_ring_can_data() {
  QTest::addColumn<bool>("answers");
  QTest::addColumn<bool>("silent");
  QTest::addColumn<int>("peer");
  QTest::newRow("the other end saw nothing") << false << false << 0;
  QTest::newRow("the other end was closed upon") << true << false << 1;
  QTest::newRow("the other end names another") << true << true << 3;
}

void CoordinatorLinksTest::an_edge_that_one_end_found_silent_is_avoided_where_a_ring_can() {
  QFETCH(bool, answers);
  QFETCH(bool, silent);
  QFETCH(int, peer);
  SimulatedMesh mesh(run_for(4));
  begin_first_round(mesh, 4);
  all_ready(mesh, 4);

  mesh.say(1, silent_edge(mesh, 1, 2));
  if (answers) {
    IslandAttemptFailed answer = silent_edge(mesh, 1, peer);
    answer.silent = silent;
    mesh.say(2, answer);
  }
  deliver(mesh);

  QCOMPARE(received<HubAttempt>(mesh.island(4)).size(), std::size_t{2});
  const std::vector<IslandId> order = order_of(received<HubAttempt>(mesh.island(4)).back());
  QCOMPARE(order.size(), std::size_t{4});  // nobody sits out for a word
  const auto at = [&](int number) { return std::ranges::find(order, mesh.island(number).id) - order.begin(); };
  QCOMPARE(std::abs(at(1) - at(2)), std::ptrdiff_t{2});
}

void CoordinatorLinksTest::nobody_sits_out_at_once_for_an_edge_that_no_ring_can_avoid() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  all_ready(mesh, 3);

  mesh.say(1, silent_edge(mesh, 1, 2));
  mesh.say(2, silent_edge(mesh, 1, 1));
  deliver(mesh);

  QCOMPARE(order_of(received<HubAttempt>(mesh.island(3)).back()).size(), std::size_t{3});
}

void CoordinatorLinksTest::two_islands_that_nobody_can_dial_are_not_neighbours_and_their_edges_say_who_dials() {
  SimulatedMesh mesh(run_for(4));
  begin_first_round(mesh, 4);
  for (const int hidden : {1, 2}) answer_dial(mesh, hidden, false);

  all_ready(mesh, 4);

  const HubAttempt attempt = received<HubAttempt>(mesh.island(1)).back();
  QCOMPARE(attempt.order.size(), std::size_t{4});
  for (std::size_t r = 0; r < 4; ++r) {
    const bool hidden = attempt.order[r].id == mesh.island(1).id || attempt.order[r].id == mesh.island(2).id;
    QCOMPARE(attempt.order[r].dials_previous, hidden);
    QVERIFY(!(hidden && attempt.order[(r + 1) % 4].dials_previous));
  }
}

void CoordinatorLinksTest::below_8_bits_an_attempt_with_a_member_that_nobody_can_dial_is_int8() {
  RunConfig run = run_for(3);
  run.wire = WireFormat::kInt4E3m0;
  SimulatedMesh mesh(run);
  begin_first_round(mesh, 3);
  all_ready(mesh, 3);
  QCOMPARE(received<HubAttempt>(mesh.island(1)).back().wire, WireFormat::kInt4E3m0);

  IslandAttemptFailed failed{OuterStep{0}, Attempt{1}, std::nullopt, "reset", {true, false, true, false}};
  answer_dial(mesh, 3, false);
  for (int i = 1; i <= 3; ++i) mesh.say(i, failed);
  deliver(mesh);

  QCOMPARE(received<HubAttempt>(mesh.island(1)).back().attempt, Attempt{2});
  QCOMPARE(received<HubAttempt>(mesh.island(1)).back().wire, WireFormat::kInt8Block);
  QVERIFY(received<HubAttempt>(mesh.island(1)).back().final_buckets.empty());  // they are of the other format
  failed.attempt = Attempt{2};
  for (int i = 1; i <= 3; ++i) mesh.say(i, failed);
  mesh.pass(1s);
  deliver(mesh);
  QCOMPARE(received<HubAttempt>(mesh.island(1)).back().attempt, Attempt{3});
  QCOMPARE(received<HubAttempt>(mesh.island(1)).back().final_buckets, failed.whole_buckets);
}

void CoordinatorLinksTest::an_island_is_dialled_when_it_joins_and_when_its_address_changes() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  QCOMPARE(mesh.dials().size(), std::size_t{2});
  QCOMPARE(mesh.dials()[1].island, mesh.island(2).id);
  QCOMPARE(mesh.dials()[1].address.port, std::uint16_t{2});
  answer_dial(mesh, 1, true);
  answer_dial(mesh, 2, true);

  mesh.cut(2);
  mesh.link(2);
  QCOMPARE(mesh.dials().size(), std::size_t{2});
  mesh.cut(2);
  mesh.island(2).port = 4711;
  mesh.link(2);

  QCOMPARE(mesh.dials().size(), std::size_t{3});
  QCOMPARE(mesh.dials()[2].address.port, std::uint16_t{4711});
}

void CoordinatorLinksTest::the_answer_of_an_address_that_it_left_says_nothing() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  const DialIsland old = mesh.dials()[1];
  mesh.cut(2);
  mesh.island(2).port = 4711;
  mesh.link(2);
  answer_dial(mesh, 2, true);

  mesh.hub_hears(IslandDialled{old.island, old.address, false});
  mesh.hub_hears(IslandDialled{IslandId{"isl-99"}, old.address, false});  // gone meanwhile

  all_ready(mesh, 2);
  const HubAttempt attempt = received<HubAttempt>(mesh.island(1)).at(0);
  for (const AttemptMember& member : attempt.order) QVERIFY(!member.dials_previous);
}

void CoordinatorLinksTest::who_could_not_be_dialled_is_dialled_again_now_and_then() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  answer_dial(mesh, 1, true);
  answer_dial(mesh, 2, false);
  mesh.cut(2);
  mesh.link(2);
  QCOMPARE(mesh.dials().size(), std::size_t{3});  // when it comes back
  answer_dial(mesh, 2, false);

  commit_rounds(mesh, 2);
  QCOMPARE(mesh.dials().size(), std::size_t{3});
  mesh.pass(5s);
  for (int i = 0; i < 120; ++i) mesh.pass(5s);
  commit_rounds(mesh, 2);

  QCOMPARE(mesh.dials().size(), std::size_t{4});
  QCOMPARE(mesh.dials()[3].island, mesh.island(2).id);
}

void CoordinatorLinksTest::one_of_three_sits_out_when_two_cannot_be_dialled_until_one_of_them_can() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  answer_dial(mesh, 1, false);
  answer_dial(mesh, 2, false);
  all_ready(mesh, 3);
  QCOMPARE(order_of(received<HubAttempt>(mesh.island(1)).back()).size(), std::size_t{2});
  answer_dial(mesh, 2, true);

  commit_rounds(mesh, 3);

  QCOMPARE(mesh.commits().back().members.size(), std::size_t{3});
}

void CoordinatorLinksTest::a_hub_that_restarts_knows_no_links_and_learns_them_again() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  measure_links(mesh, 3, [](int from, int to) { return from % 3 + 1 == to ? 1e6 : 50e6; });
  all_ready(mesh, 3);
  const std::vector<IslandId> by_id{mesh.island(1).id, mesh.island(2).id, mesh.island(3).id};
  QVERIFY(order_of(received<HubAttempt>(mesh.island(1)).back()) != by_id);
  for (int i = 1; i <= 3; ++i) mesh.island(i).received.clear();

  mesh.restart_hub();
  for (int i = 1; i <= 3; ++i) mesh.link(i);
  commit_rounds(mesh, 2);

  QCOMPARE(mesh.dials().size(), std::size_t{6});  // who can be dialled is found out again too
  QVERIFY(order_of(received<HubAttempt>(mesh.island(1)).back()) == by_id);
  std::size_t probes = 0;
  for (int i = 1; i <= 3; ++i) probes += received<HubProbe>(mesh.island(i)).size();
  QVERIFY(probes > 0);
  QCOMPARE(mesh.violation(), std::string());
}

void CoordinatorLinksTest::an_edge_that_was_dead_is_tried_again_after_a_while() {
  SimulatedMesh mesh(run_for(4));
  begin_first_round(mesh, 4);
  all_ready(mesh, 4);
  for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
    mesh.say(1, IslandAttemptFailed{OuterStep{0}, Attempt{attempt}, mesh.island(2).id, "timeout"});
    mesh.pass(5s);
    deliver(mesh);
  }
  const auto are_neighbours = [&] {
    const std::vector<IslandId> order = order_of(received<HubAttempt>(mesh.island(4)).back());
    const auto at = [&](int number) { return std::ranges::find(order, mesh.island(number).id) - order.begin(); };
    return std::abs(at(1) - at(2)) != 2;
  };
  QVERIFY(!are_neighbours());
  commit_rounds(mesh, 2);
  QVERIFY(!are_neighbours());

  for (int i = 0; i < 121; ++i) mesh.pass(5s);
  // The only ring that is fast goes over that edge, which is known for good again.
  measure_links(mesh, 4, [](int from, int to) { return from % 4 + 1 == to ? 50e6 : 1e6; });
  commit_rounds(mesh, 2);

  QVERIFY(are_neighbours());
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
