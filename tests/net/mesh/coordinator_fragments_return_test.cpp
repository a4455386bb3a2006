// With several fragments under way: who pauses, dies or is removed, a hub that starts again, and the way back.
#include <QtTest>

#include "tests/net/mesh/fragment_script.h"

namespace atl {

class CoordinatorFragmentsReturnTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void who_pauses_with_two_rounds_open_keeps_its_place_in_both();
  void the_leases_of_one_that_is_removed_are_free_in_all_rounds();
  void a_hub_that_restarts_goes_on_with_all_open_rounds();
  void a_hub_that_restarts_after_a_rollback_goes_on_with_one_round();
  void a_rollback_gives_up_all_open_rounds();
  void who_misses_the_commit_of_one_round_is_no_member_of_the_next();
  void everybody_may_die_with_two_rounds_open();
  void everybody_may_die_before_two_commits_are_on_the_disks_as_states();
};

void CoordinatorFragmentsReturnTest::who_pauses_with_two_rounds_open_keeps_its_place_in_both() {
  SimulatedMesh mesh(run_of(2, 3));
  begin_first_round(mesh, 3);
  all_say_ready(mesh, 3, 0);
  const auto leases = received<HubRoundBegin>(mesh.island(3));
  QCOMPARE(leases.size(), std::size_t{2});

  mesh.say(3, IslandLeaving{"paused by its owner", true});
  mesh.pass(1s);
  deliver(mesh);
  QCOMPARE(received<HubAttempt>(mesh.island(1)).back().order.size(), std::size_t{2});  // nobody waits for it
  mesh.link(3);
  deliver(mesh);
  say_ready(mesh, 3, 0);
  deliver(mesh);

  const auto told = received<HubRoundBegin>(mesh.island(3));
  QCOMPARE(told.size(), std::size_t{4});
  for (std::size_t i : {0, 1}) QCOMPARE(told[2 + i].lease_first_sequence, leases[i].lease_first_sequence);
  QVERIFY2(mesh.violation().empty(), mesh.violation().c_str());
}

void CoordinatorFragmentsReturnTest::the_leases_of_one_that_is_removed_are_free_in_all_rounds() {
  SimulatedMesh mesh(run_of(2, 3));
  average_two_rounds(mesh, 3);
  std::set<std::uint64_t> its;
  for (const HubRoundBegin& begun : received<HubRoundBegin>(mesh.island(3))) its.insert(begun.lease_first_sequence);
  QCOMPARE(its.size(), std::size_t{2});

  mesh.remove(3);
  go_on(mesh, 4);

  QVERIFY(mesh.commits().size() >= 4);
  for (const LeaseRange& lease : mesh.committed_leases()) its.erase(lease.first);
  QVERIFY(its.empty());  // others have trained them
  QVERIFY2(mesh.violation().empty(), mesh.violation().c_str());
}

void CoordinatorFragmentsReturnTest::a_hub_that_restarts_goes_on_with_all_open_rounds() {
  SimulatedMesh mesh(run_of(3, 3));
  average_two_rounds(mesh, 3);
  QCOMPARE(mesh.hub().rounds().size(), std::size_t{3});
  const auto before = received<HubRoundBegin>(mesh.island(2));

  mesh.restart_hub();
  QCOMPARE(mesh.hub().rounds().size(), std::size_t{3});
  for (int i = 1; i <= 3; ++i) mesh.link(i);
  deliver(mesh);
  for (const std::uint32_t round : {0u, 1u}) all_say_ready(mesh, 3, round);

  const auto told = received<HubRoundBegin>(mesh.island(2));
  QCOMPARE(told.size(), before.size() + 3);
  for (std::size_t i = 0; i < 3; ++i) {
    QCOMPARE(told[before.size() + i].lease_first_sequence, before[i].lease_first_sequence);
  }
  // Attempts of before are given up, and not counted again.
  QCOMPARE(received<HubAttempt>(mesh.island(2)).back().attempt, Attempt{2});
  go_on(mesh, 3);
  QVERIFY(mesh.commits().size() >= 3);
  QVERIFY2(mesh.violation().empty(), mesh.violation().c_str());
}

void CoordinatorFragmentsReturnTest::a_hub_that_restarts_after_a_rollback_goes_on_with_one_round() {
  SimulatedMesh mesh(run_of(2, 3));
  mesh.keeps_states = true;
  for (int i = 1; i <= 3; ++i) mesh.start(i);
  go_on(mesh, 3);
  const OuterStep to{mesh.hub().committed().value - 2};
  mesh.roll_back(to);

  // The disk knows leases of the rounds that were undone, and of those that were open: all are free.
  mesh.restart_hub();

  QCOMPARE(mesh.hub().committed(), to);
  QVERIFY(mesh.hub().rounds().size() <= 1);
  for (int i = 1; i <= 3; ++i) mesh.link(i);
  go_on(mesh, 70);
  QVERIFY(mesh.hub().committed() > OuterStep{to.value + 3});
  QVERIFY2(mesh.violation().empty(), mesh.violation().c_str());
}

void CoordinatorFragmentsReturnTest::a_rollback_gives_up_all_open_rounds() {
  SimulatedMesh mesh(run_of(2, 3));
  mesh.keeps_states = true;
  average_two_rounds(mesh, 3);

  mesh.roll_back(OuterStep{0});
  deliver(mesh);

  std::set<std::uint32_t> given_up;
  for (const HubAbort& abort : received<HubAbort>(mesh.island(1))) given_up.insert(abort.round.value);
  QCOMPARE(given_up, (std::set<std::uint32_t>{0, 1}));
  QCOMPARE(rounds_begun(mesh.island(1)), (BegunRounds{0, 1, 0}));
  // Its leases are those that are free again.
  const auto begun = received<HubRoundBegin>(mesh.island(1));
  QVERIFY(begun.back().lease_first_sequence < 6 * begun.back().lease_sequences);
  go_on(mesh, 3);
  QVERIFY(mesh.commits().size() >= 3);
  QVERIFY2(mesh.violation().empty(), mesh.violation().c_str());
}

void CoordinatorFragmentsReturnTest::who_misses_the_commit_of_one_round_is_no_member_of_the_next() {
  SimulatedMesh mesh(run_of(2, 4));
  average_two_rounds(mesh, 4);
  all_have(mesh, 4, 1);  // agreed on, and waits
  for (int i = 1; i <= 3; ++i) have(mesh, i, 1);

  mesh.cut(4);  // round 0 is committed without it
  deliver(mesh);

  QCOMPARE(mesh.commits().size(), std::size_t{2});
  for (const HubCommit& commit : mesh.commits()) QCOMPARE(commit.holders.size(), std::size_t{3});
  mesh.link(4);
  go_on(mesh, 5);
  QCOMPARE(mesh.commits().back().members.size(), std::size_t{4});
  QVERIFY2(mesh.violation().empty(), mesh.violation().c_str());
}

void CoordinatorFragmentsReturnTest::everybody_may_die_with_two_rounds_open() {
  SimulatedMesh mesh(run_of(2, 3));
  mesh.keeps_states = true;
  for (int i = 1; i <= 3; ++i) mesh.start(i);
  go_on(mesh, 2);
  const std::size_t before = mesh.commits().size();
  QVERIFY(before > 0);
  mesh.trains_by_itself = false;
  const std::uint32_t oldest = mesh.hub().committed().value;
  for (std::uint32_t round = oldest; round < oldest + 2; ++round) all_say_ready(mesh, 3, round);
  QCOMPARE(mesh.hub().rounds().size(), std::size_t{2});

  for (int i = 1; i <= 3; ++i) mesh.kill(i);
  mesh.pass(1s);
  for (int i = 1; i <= 3; ++i) mesh.start(i);
  go_on(mesh, 8);

  QVERIFY(mesh.commits().size() >= before + 3);
  QCOMPARE(mesh.commits().back().members.size(), std::size_t{3});
  QVERIFY2(mesh.violation().empty(), mesh.violation().c_str());
}

// What each disk holds is the state before both, and the two averages, of which nobody heard that they are committed:
// the hub sends both commits, nothing is lost.
void CoordinatorFragmentsReturnTest::everybody_may_die_before_two_commits_are_on_the_disks_as_states() {
  for (const bool hub_restarts : {false, true}) {
    SimulatedMesh mesh(run_of(2, 3));
    mesh.keeps_states = true;
    average_two_rounds(mesh, 3);
    all_have(mesh, 3, 1);
    all_have(mesh, 3, 0);
    QCOMPARE(mesh.commits().size(), std::size_t{2});
    for (int i = 1; i <= 3; ++i) {
      SimulatedMesh::Island& island = mesh.island(i);
      std::erase_if(island.durable, [](const HeldState& held) { return held.outer_step.value > 0; });
      island.logged.clear();
      for (const std::uint32_t round : {0u, 1u}) {
        island.lane(FragmentId{round}).kept_average = {OuterStep{round}, kDigest};
      }
      mesh.kill(i);
    }
    if (hub_restarts) mesh.restart_hub();

    for (int i = 1; i <= 3; ++i) mesh.start(i);
    go_on(mesh, 8);

    const auto told = received<HubCommit>(mesh.island(1));
    QVERIFY(told.size() > 2);
    QCOMPARE(told[0].round, OuterStep{0});
    QCOMPARE(told[1].round, OuterStep{1});
    QCOMPARE(mesh.count<RolledBack>(), 0);
    QVERIFY(mesh.commits().size() >= 5);
    QVERIFY2(mesh.violation().empty(), mesh.violation().c_str());
  }
}

}  // namespace atl

QTEST_APPLESS_MAIN(atl::CoordinatorFragmentsReturnTest)
#include "coordinator_fragments_return_test.moc"
