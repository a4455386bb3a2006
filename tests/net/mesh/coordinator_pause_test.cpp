// Islands whose owners take them back for a while.
#include <QtTest>

#include "tests/net/mesh/coordinator_script.h"

namespace atl {

class CoordinatorPauseTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void nobody_waits_for_a_paused_island();
  void a_paused_island_is_not_dead();
  void one_that_comes_back_within_the_round_keeps_its_lease();
  void one_that_comes_back_later_recovers();
  void the_lease_of_a_pause_that_was_too_long_is_given_again();
  void a_round_whose_trainers_all_pause_is_trained_by_who_came_meanwhile();
  void a_paused_island_is_not_in_the_roster();
  void an_island_alone_goes_on_with_its_round();
  void a_place_is_not_kept_for_ever();
  void one_whose_process_died_gets_the_lease_again_of_which_it_kept_work_data();
  void one_whose_process_died_gets_the_lease_again_of_which_it_kept_work();
};

namespace {

const IslandLeaving kPause{"paused by its owner", true};

// As its trainer does: the process ends, and what it had is on its disk.
void pause(SimulatedMesh& mesh, int island) {
  mesh.say(island, kPause);
  mesh.cut(island);
}

}  // namespace

// It says to have worked on the lease that the lost one had, or on another; what it gets is its work, or nothing.
void CoordinatorPauseTest::one_whose_process_died_gets_the_lease_again_of_which_it_kept_work_data() {
  QTest::addColumn<quint32>("round");
  QTest::addColumn<int>("further");  // than its own lease
  QTest::addColumn<quint64>("sequences");
  QTest::addColumn<bool>("averages");
  QTest::addColumn<bool>("trains");
  QTest::newRow("its own") << 0u << 0 << quint64{8} << false << true;
  QTest::newRow("of another round") << 1u << 0 << quint64{8} << false << false;
  QTest::newRow("another's") << 0u << -8 << quint64{8} << false << false;
  QTest::newRow("one that nobody had") << 0u << 800 << quint64{8} << false << false;
  QTest::newRow("a part of it") << 0u << 0 << quint64{4} << false << false;
  QTest::newRow("too late") << 0u << 0 << quint64{8} << true << false;
}

void CoordinatorPauseTest::one_whose_process_died_gets_the_lease_again_of_which_it_kept_work() {
  QFETCH(const quint32, round);
  QFETCH(const int, further);
  QFETCH(const quint64, sequences);
  QFETCH(const bool, averages);
  QFETCH(const bool, trains);
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  const HubRoundBegin lost = received<HubRoundBegin>(mesh.island(2)).at(0);
  QCOMPARE(lost.lease_sequences, std::uint64_t{8});
  mesh.cut(2);
  for (int i = 0; i < 10; ++i) mesh.pass(1s);
  QCOMPARE(mesh.count<IslandGone>(), 1);
  if (averages) {
    mesh.say(1, ready_for(0));
    deliver(mesh);
  }
  mesh.island(2).received.clear();
  mesh.island(2).held_work =
      HeldWork{OuterStep{round}, lost.lease_first_sequence + static_cast<std::uint64_t>(further), sequences};

  mesh.link(2);
  deliver(mesh);

  const auto begun = received<HubRoundBegin>(mesh.island(2));
  QCOMPARE(begun.size(), std::size_t{1});
  QCOMPARE(begun[0].lease_sequences, trains ? lost.lease_sequences : 0);
  QCOMPARE(begun[0].lease_first_sequence, trains ? lost.lease_first_sequence : 0);
  QCOMPARE(mesh.violation(), std::string());
}

void CoordinatorPauseTest::nobody_waits_for_a_paused_island() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  pause(mesh, 3);

  mesh.say(1, ready_for(0));
  mesh.say(2, ready_for(0));
  deliver(mesh);

  QCOMPARE(received<HubAttempt>(mesh.island(1)).size(), std::size_t{1});
  QCOMPARE(received<HubAttempt>(mesh.island(1)).at(0).order.size(), std::size_t{2});
}

void CoordinatorPauseTest::a_paused_island_is_not_dead() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  pause(mesh, 2);
  for (int i = 0; i < 600; ++i) mesh.pass(1s);

  QCOMPARE(mesh.count<IslandGone>(), 0);
  QCOMPARE(mesh.count<IslandPaused>(), 1);
  QVERIFY(mesh.hub().islands().at(mesh.island(2).id).paused);
}

void CoordinatorPauseTest::one_that_comes_back_within_the_round_keeps_its_lease() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  pause(mesh, 2);
  for (int i = 0; i < 60; ++i) mesh.pass(1s);

  mesh.link(2);
  deliver(mesh);

  const auto begun = received<HubRoundBegin>(mesh.island(2));
  QCOMPARE(begun.size(), std::size_t{2});
  QCOMPARE(begun[0].lease_first_sequence, begun[1].lease_first_sequence);
  QCOMPARE(begun[0].inner_steps, begun[1].inner_steps);
  all_ready(mesh, 2);
  QCOMPARE(received<HubAttempt>(mesh.island(1)).at(0).order.size(), std::size_t{2});
}

void CoordinatorPauseTest::one_that_comes_back_later_recovers() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  pause(mesh, 2);
  mesh.say(1, ready_for(0));
  deliver(mesh);
  have(mesh, 1, 1);
  deliver(mesh);
  QCOMPARE(mesh.hub().committed(), OuterStep{1});

  mesh.link(2);
  deliver(mesh);

  QCOMPARE(received<HubRecover>(mesh.island(2)).size(), std::size_t{1});
  QCOMPARE(mesh.violation(), std::string());
}

void CoordinatorPauseTest::the_lease_of_a_pause_that_was_too_long_is_given_again() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  const auto lost = received<HubRoundBegin>(mesh.island(2)).at(0).lease_first_sequence;
  pause(mesh, 2);
  mesh.say(1, ready_for(0));
  deliver(mesh);
  have(mesh, 1, 1);
  deliver(mesh);

  QCOMPARE(received<HubRoundBegin>(mesh.island(1)).back().lease_first_sequence, lost);
}

void CoordinatorPauseTest::a_round_whose_trainers_all_pause_is_trained_by_who_came_meanwhile() {
  SimulatedMesh mesh(run_for(1));
  begin_first_round(mesh, 1);
  mesh.start(2);
  deliver(mesh);
  QCOMPARE(received<HubRoundBegin>(mesh.island(2)).back().inner_steps, 0u);

  pause(mesh, 1);
  deliver(mesh);

  QVERIFY(received<HubRoundBegin>(mesh.island(2)).back().inner_steps > 0);
}

void CoordinatorPauseTest::a_paused_island_is_not_in_the_roster() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);

  pause(mesh, 2);
  mesh.pass(1s);
  deliver(mesh);
  QCOMPARE(received<HubRoster>(mesh.island(1)).back().islands.size(), std::size_t{1});
  mesh.link(2);
  mesh.pass(1s);
  deliver(mesh);

  QCOMPARE(received<HubRoster>(mesh.island(1)).back().islands.size(), std::size_t{2});
}

void CoordinatorPauseTest::an_island_alone_goes_on_with_its_round() {
  SimulatedMesh mesh(run_for(1));
  begin_first_round(mesh, 1);
  pause(mesh, 1);
  for (int i = 0; i < 60; ++i) mesh.pass(1s);
  QCOMPARE(mesh.hub().committed(), OuterStep{0});

  mesh.link(1);
  deliver(mesh);
  all_ready(mesh, 1);
  have(mesh, 1, 1);
  deliver(mesh);

  QCOMPARE(mesh.hub().committed(), OuterStep{1});
}

void CoordinatorPauseTest::a_place_is_not_kept_for_ever() {
  SimulatedMesh mesh(run_for(1));
  begin_first_round(mesh, 2);
  pause(mesh, 2);

  mesh.pass(std::chrono::hours(24 * 8));

  QVERIFY(!mesh.hub().islands().contains(mesh.island(2).id));
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::CoordinatorPauseTest)
#include "coordinator_pause_test.moc"
