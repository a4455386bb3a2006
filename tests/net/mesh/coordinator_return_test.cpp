// Islands and hubs that come back.
#include <QtTest>

#include "tests/net/mesh/coordinator_script.h"

namespace atl {

class CoordinatorReturnTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_island_that_reconnects_in_time_keeps_its_lease();
  void an_island_that_missed_the_commit_gets_it_when_it_comes_back();
  void who_catches_up_needs_no_source_that_leaves();
  void one_that_does_not_hold_the_committed_average_recovers();
  void a_wrong_state_hash_sends_its_island_to_recover();
  void a_removed_island_is_forgotten_although_it_is_away_data();
  void a_removed_island_is_forgotten_although_it_is_away();
  void a_hub_that_restarts_goes_on_with_the_open_round();
  void a_hub_that_restarts_after_the_commit_tells_it_again();
};

void CoordinatorReturnTest::an_island_that_reconnects_in_time_keeps_its_lease() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  mesh.say(2, ready_for(0));
  mesh.cut(2);
  mesh.say(1, ready_for(0));
  mesh.pass(1s);

  mesh.link(2);
  deliver(mesh);
  const auto begun = received<HubRoundBegin>(mesh.island(2));
  QCOMPARE(begun.size(), std::size_t{2});
  QCOMPARE(begun[0].lease_first_sequence, begun[1].lease_first_sequence);
  mesh.say(2, ready_for(0));
  deliver(mesh);

  QCOMPARE(received<HubAttempt>(mesh.island(1)).at(0).order.size(), std::size_t{2});
}

void CoordinatorReturnTest::an_island_that_missed_the_commit_gets_it_when_it_comes_back() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  all_ready(mesh, 2);
  have(mesh, 1, 1);
  have(mesh, 2, 1);
  mesh.cut(2);  // before it read the commit
  deliver(mesh);
  QVERIFY(received<HubCommit>(mesh.island(2)).empty());

  mesh.link(2);
  deliver(mesh);

  QCOMPARE(received<HubCommit>(mesh.island(2)).size(), std::size_t{1});
  QCOMPARE(mesh.island(2).outer_step, std::optional(OuterStep{1}));
  QVERIFY(received<HubRecover>(mesh.island(2)).empty());
  QCOMPARE(received<HubRoundBegin>(mesh.island(2)).back().round, OuterStep{1});
  QCOMPARE(mesh.violation(), std::string());
}

// Its own average is all that it needs: a state from elsewhere would cost it the round.
void CoordinatorReturnTest::who_catches_up_needs_no_source_that_leaves() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  all_ready(mesh, 3);
  for (int i = 1; i <= 3; ++i) have(mesh, i, 1);
  mesh.cut(3);
  deliver(mesh);
  mesh.link(3);

  mesh.say(2, IslandLeaving{"that was enough", false});
  deliver(mesh);

  QCOMPARE(received<HubCommit>(mesh.island(3)).size(), std::size_t{1});
  QVERIFY(received<HubRecover>(mesh.island(3)).empty());
  QCOMPARE(mesh.island(3).outer_step, std::optional(OuterStep{1}));
}

void CoordinatorReturnTest::one_that_does_not_hold_the_committed_average_recovers() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  all_ready(mesh, 3);
  for (int i = 1; i <= 3; ++i) have(mesh, i, 1);
  mesh.cut(2);
  mesh.island(2).lane().average.reset();  // its process died and started again from its checkpoint
  deliver(mesh);

  mesh.link(2);
  deliver(mesh);

  QCOMPARE(received<HubRecover>(mesh.island(2)).size(), std::size_t{1});
}

void CoordinatorReturnTest::a_wrong_state_hash_sends_its_island_to_recover() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  all_ready(mesh, 3);
  mesh.island(2).state_hash = fake_sha256("diverged");
  for (int i = 1; i <= 3; ++i) have(mesh, i, 1);

  deliver(mesh);

  QCOMPARE(received<HubRecover>(mesh.island(2)).size(), std::size_t{1});
  QCOMPARE(mesh.count<StateHashesCompared>(), 1);
  for (const CoordinatorNews& news : mesh.news()) {
    if (const auto* compared = std::get_if<StateHashesCompared>(&news)) QVERIFY(!compared->equal);
  }
  mesh.say(1, ready_for(1));
  mesh.say(3, ready_for(1));
  deliver(mesh);
  QCOMPARE(received<HubAttempt>(mesh.island(1)).back().order.size(), std::size_t{2});
}

void CoordinatorReturnTest::a_removed_island_is_forgotten_although_it_is_away_data() {
  QTest::addColumn<bool>("paused");
  QTest::newRow("its connection broke") << false;
  QTest::newRow("it pauses") << true;
}

void CoordinatorReturnTest::a_removed_island_is_forgotten_although_it_is_away() {
  QFETCH(bool, paused);
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  if (paused) {
    mesh.say(2, IslandLeaving{"paused", true});
    deliver(mesh);
  }
  mesh.cut(2);
  const std::size_t rosters = received<HubRoster>(mesh.island(1)).size();

  mesh.remove(2);
  deliver(mesh);

  QVERIFY(!mesh.hub().islands().contains(mesh.island(2).id));
  const auto heard = received<HubRoster>(mesh.island(1));
  QVERIFY(heard.size() > rosters);  // who is here drops its connections to it
  QCOMPARE(heard.back().islands.size(), std::size_t{1});
}

void CoordinatorReturnTest::a_hub_that_restarts_goes_on_with_the_open_round() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  all_ready(mesh, 2);
  mesh.settle();  // some rounds on
  QVERIFY(mesh.hub().committed() > OuterStep{3});
  mesh.trains_by_itself = false;
  const OuterStep committed = mesh.hub().committed();
  const auto lease = received<HubRoundBegin>(mesh.island(1)).back().lease_first_sequence;

  mesh.restart_hub();
  mesh.tick();
  mesh.link(1);
  mesh.link(2);
  deliver(mesh);

  QCOMPARE(mesh.hub().committed(), committed);
  QVERIFY(mesh.hub().round_open());
  QCOMPARE(received<HubRoundBegin>(mesh.island(1)).back().round, committed);
  QCOMPARE(received<HubRoundBegin>(mesh.island(1)).back().lease_first_sequence, lease);
  mesh.trains_by_itself = true;
  mesh.settle();
  QVERIFY(mesh.hub().committed() > committed);
  QCOMPARE(mesh.violation(), std::string());
}

void CoordinatorReturnTest::a_hub_that_restarts_after_the_commit_tells_it_again() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  all_ready(mesh, 2);
  have(mesh, 1, 1);
  have(mesh, 2, 1);

  mesh.restart_hub();  // nobody has read the commit
  mesh.link(1);
  mesh.link(2);
  deliver(mesh);

  for (int i = 1; i <= 2; ++i) {
    QCOMPARE(received<HubCommit>(mesh.island(i)).size(), std::size_t{1});
    QCOMPARE(mesh.island(i).outer_step, std::optional(OuterStep{1}));
  }
  QCOMPARE(mesh.violation(), std::string());
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::CoordinatorReturnTest)
#include "coordinator_return_test.moc"
