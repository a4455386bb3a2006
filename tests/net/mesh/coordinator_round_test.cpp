// A round from its begin to its commit, and the end of the run.
#include <QtTest>

#include "tests/net/mesh/coordinator_script.h"

namespace atl {

class CoordinatorRoundTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_attempt_opens_when_every_trainer_is_ready();
  void a_straggler_is_left_behind_when_the_grace_is_over_and_recovers();
  void a_commit_is_told_to_all_members_once_all_hold_the_same_digest();
  void three_rounds_are_committed_and_their_hashes_are_equal();
  void a_pseudo_gradient_that_is_not_finite_sends_its_island_to_recover();
  void more_tokens_than_leased_are_refused();
  void leaving_ends_membership_at_once();
  void after_the_last_round_one_island_validates_and_all_are_sent_home();
};

void CoordinatorRoundTest::an_attempt_opens_when_every_trainer_is_ready() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  mesh.say(1, ready_for(0));
  mesh.say(2, ready_for(0));
  deliver(mesh);
  QVERIFY(received<HubAttempt>(mesh.island(1)).empty());

  mesh.say(3, ready_for(0));
  deliver(mesh);

  for (int i = 1; i <= 3; ++i) {
    const auto attempts = received<HubAttempt>(mesh.island(i));
    QCOMPARE(attempts.size(), std::size_t{1});
    QCOMPARE(attempts[0].attempt, Attempt{1});
    QCOMPARE(attempts[0].order.size(), std::size_t{3});
    QCOMPARE(attempts[0].order[0].id, IslandId{"isl-1"});  // the same order on all
  }
}

void CoordinatorRoundTest::a_straggler_is_left_behind_when_the_grace_is_over_and_recovers() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  mesh.say(1, ready_for(0));
  mesh.say(2, ready_for(0));
  for (int i = 0; i < 59; ++i) mesh.pass(1s);
  deliver(mesh);
  QVERIFY(received<HubAttempt>(mesh.island(1)).empty());

  mesh.pass(2s);
  deliver(mesh);

  QCOMPARE(received<HubAttempt>(mesh.island(1)).at(0).order.size(), std::size_t{2});
  have(mesh, 1, 1);
  have(mesh, 2, 1);
  deliver(mesh);
  QCOMPARE(received<HubRecover>(mesh.island(3)).size(), std::size_t{1});
  QCOMPARE(received<HubRecover>(mesh.island(3))[0].outer_step, OuterStep{1});
  QVERIFY(received<HubCommit>(mesh.island(3)).empty());
}

void CoordinatorRoundTest::a_commit_is_told_to_all_members_once_all_hold_the_same_digest() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  all_ready(mesh, 2);
  have(mesh, 1, 1);
  deliver(mesh);
  QVERIFY(received<HubCommit>(mesh.island(1)).empty());

  have(mesh, 2, 1);
  deliver(mesh);

  for (int i = 1; i <= 2; ++i) {
    const auto commits = received<HubCommit>(mesh.island(i));
    QCOMPARE(commits.size(), std::size_t{1});
    QCOMPARE(commits[0].digest, kDigest);
    QCOMPARE(commits[0].members.size(), std::size_t{2});
    QVERIFY(!commits[0].signature.empty());
    // the next round begins right behind it
    QCOMPARE(received<HubRoundBegin>(mesh.island(i)).back().round, OuterStep{1});
  }
  QCOMPARE(mesh.violation(), std::string());
}

void CoordinatorRoundTest::three_rounds_are_committed_and_their_hashes_are_equal() {
  RunConfig run = run_for(3);
  run.max_rounds = 3;
  SimulatedMesh mesh(run);
  for (int i = 1; i <= 3; ++i) mesh.start(i);

  mesh.settle();

  QCOMPARE(mesh.commits().size(), std::size_t{3});
  QCOMPARE(mesh.count<StateHashesCompared>(), 3);
  for (const CoordinatorNews& news : mesh.news()) {
    if (const auto* compared = std::get_if<StateHashesCompared>(&news)) QVERIFY(compared->equal);
  }
  QCOMPARE(mesh.count<RunFinished>(), 1);
  QCOMPARE(mesh.violation(), std::string());
}

void CoordinatorRoundTest::a_pseudo_gradient_that_is_not_finite_sends_its_island_to_recover() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);

  mesh.say(1, IslandReady{OuterStep{0}, 0, std::nan(""), std::nan("")});
  deliver(mesh);

  QCOMPARE(received<HubInitialise>(mesh.island(1)).size(), std::size_t{2});  // anew
  mesh.say(2, ready_for(0));
  mesh.say(1, IslandReady{OuterStep{0}, 0, 0, 0});
  deliver(mesh);
  const auto order = received<HubAttempt>(mesh.island(2)).at(0).order;
  QCOMPARE(order.size(), std::size_t{2});
  QCOMPARE(order[0].tokens, std::uint64_t{0});  // it receives this round
}

void CoordinatorRoundTest::more_tokens_than_leased_are_refused() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);

  mesh.say(1, IslandReady{OuterStep{0}, 65, 0.5, 2.0});

  QVERIFY(mesh.island(1).goodbye && mesh.island(1).goodbye->code == ErrorCode::kProtocol);
}

void CoordinatorRoundTest::leaving_ends_membership_at_once() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  mesh.say(1, ready_for(0));

  mesh.say(2, IslandLeaving{"its owner takes it back"});
  deliver(mesh);

  QCOMPARE(mesh.hub().islands().size(), std::size_t{1});
  QCOMPARE(received<HubAttempt>(mesh.island(1)).at(0).order.size(), std::size_t{1});
  QCOMPARE(received<HubRoster>(mesh.island(1)).back().islands.size(), std::size_t{1});
}

void CoordinatorRoundTest::after_the_last_round_one_island_validates_and_all_are_sent_home() {
  RunConfig run = run_for(2);
  run.max_rounds = 1;
  run.validate_every = 1;
  run.validation_rise = 0;  // else all are asked for the first one
  SimulatedMesh mesh(run);
  begin_first_round(mesh, 2);
  QVERIFY(received<HubRoundBegin>(mesh.island(1)).at(0).validate);
  QVERIFY(!received<HubRoundBegin>(mesh.island(2)).at(0).validate);
  all_ready(mesh, 2);
  have(mesh, 1, 1);
  have(mesh, 2, 1);
  deliver(mesh);
  QVERIFY(received<HubRoundBegin>(mesh.island(1)).back().validate);
  QCOMPARE(received<HubRoundBegin>(mesh.island(1)).back().inner_steps, 0u);
  QVERIFY(!mesh.island(2).goodbye.has_value());

  mesh.say(1, IslandValidation{OuterStep{1}, 1.5});

  for (int i = 1; i <= 2; ++i) QVERIFY(mesh.island(i).goodbye && mesh.island(i).goodbye->finished);
  QCOMPARE(mesh.hub().phase(), RoundCoordinator::Phase::kFinished);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::CoordinatorRoundTest)
#include "coordinator_round_test.moc"
