// Total loss, old backups, and two hubs of one run.
#include <QtTest>

#include "tests/net/mesh/coordinator_script.h"

namespace atl {
namespace {

// Islands 1..n have committed some rounds and keep them.
void train_a_while(SimulatedMesh& mesh, int islands) {
  mesh.keeps_states = true;
  for (int i = 1; i <= islands; ++i) mesh.start(i);
  for (int i = 0; i < 60; ++i) mesh.settle_once();
  QVERIFY(mesh.commits().size() > 4);
}

// Its disk holds nothing that leads to this outer step, or beyond.
void lose_since(SimulatedMesh::Island& island, OuterStep step) {
  std::erase_if(island.durable, [&](const HeldState& held) { return held.outer_step >= step; });
  std::erase_if(island.logged, [&](const auto& round) { return round.first.value + 1 >= step.value; });
  for (auto& lane : island.lanes) lane.kept_average.reset();
}

void wait(SimulatedMesh& mesh, int seconds) {
  for (int i = 0; i < seconds; ++i) {
    mesh.pass(1s);
    deliver(mesh);
  }
}

}  // namespace

class CoordinatorLossTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void when_everybody_dies_the_run_goes_on_from_the_last_committed_round();
  void a_state_that_nobody_holds_is_a_named_standstill_that_its_operator_ends();
  void a_newcomer_and_the_organiser_hear_who_is_waited_for();
  void who_alone_held_the_average_and_was_removed_took_it_along_data();
  void who_alone_held_the_average_and_was_removed_took_it_along();
  void by_policy_a_run_goes_back_by_itself();
  void a_rollback_by_policy_that_fails_is_tried_again();
  void by_policy_a_run_never_goes_back_far();
  void what_a_rollback_undid_is_trained_again();
  void a_hub_from_an_old_backup_learns_what_it_missed();
  void a_restored_hub_waits_for_those_who_may_know_more();
  void the_newest_of_several_records_counts_whoever_comes_first();
  void a_spoiled_state_stays_spoiled_when_the_hub_restarts();
  void a_commit_that_a_rollback_undid_does_not_come_back();
  void the_older_of_two_hubs_steps_down();
  void two_of_three_that_do_not_agree_on_a_state_are_undone_data();
  void two_of_three_that_do_not_agree_on_a_state_are_undone();
  void a_state_with_an_honest_majority_waits();
};

// The last island is outvoted, and the first says what the state is that the others make.
void outvote_the_last(SimulatedMesh& mesh, int islands) {
  begin_first_round(mesh, islands);
  all_ready(mesh, islands);
  for (int i = 1; i < islands; ++i) have(mesh, i, 1);
  have(mesh, islands, 1, std::string(64, 'e'));
  show_no_chunks(mesh, islands, 1);
  QCOMPARE(mesh.commits().size(), std::size_t{1});
  mesh.say(1, IslandApplied{OuterStep{1}, std::string(64, 'a')});
}

void CoordinatorLossTest::when_everybody_dies_the_run_goes_on_from_the_last_committed_round() {
  SimulatedMesh mesh(run_for(3));
  mesh.keeps_states = true;
  begin_first_round(mesh, 3);
  all_ready(mesh, 3);
  mesh.trains_by_itself = true;
  for (int i = 0; i < 40 && mesh.commits().size() < 3; ++i) mesh.settle_once();
  const OuterStep committed = mesh.hub().committed();  // told to nobody yet, perhaps

  for (int i = 1; i <= 3; ++i) mesh.kill(i);
  mesh.restart_hub();
  for (int i = 1; i <= 3; ++i) mesh.start(i);
  for (int i = 0; i < 5; ++i) {
    mesh.settle();
    mesh.pass(1s);
  }

  QVERIFY(mesh.hub().committed() > committed);
  QCOMPARE(mesh.count<RolledBack>(), 0);
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

void CoordinatorLossTest::a_state_that_nobody_holds_is_a_named_standstill_that_its_operator_ends() {
  SimulatedMesh mesh(run_for(2));
  train_a_while(mesh, 2);
  const OuterStep committed = mesh.hub().committed();
  for (int i = 1; i <= 2; ++i) {
    mesh.kill(i);
    SimulatedMesh::Island& island = mesh.island(i);
    lose_since(island, committed);
    QVERIFY(!island.durable.empty());
  }
  const OuterStep kept = mesh.island(1).durable.back().outer_step;
  mesh.restart_hub();
  mesh.trains_by_itself = false;
  mesh.start(1);
  mesh.start(2);

  wait(mesh, 61);

  QVERIFY(mesh.hub().standstill().has_value());
  QCOMPARE(mesh.hub().waits_for(), std::string());  // that is the standstill's now
  QCOMPARE(mesh.hub().phase(), RoundCoordinator::Phase::kStandstill);
  const std::string command = "atoll hub rollback --to " + std::to_string(kept.value);
  QVERIFY2(mesh.hub().standstill()->text.find(command) != std::string::npos, mesh.hub().standstill()->text.c_str());
  QCOMPARE(received<HubNotice>(mesh.island(2)).back().text, mesh.hub().standstill()->text);
  mesh.roll_back(kept);
  mesh.trains_by_itself = true;
  mesh.settle();
  QVERIFY(!mesh.hub().standstill().has_value());
  QVERIFY(mesh.hub().committed() > committed);
  QCOMPARE(mesh.count<RolledBack>(), 1);
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

void CoordinatorLossTest::a_newcomer_and_the_organiser_hear_who_is_waited_for() {
  SimulatedMesh mesh(run_for(1));
  train_a_while(mesh, 1);
  mesh.kill(1);
  mesh.restart_hub();
  mesh.start(2);

  wait(mesh, 5);

  const std::string told = mesh.hub().waits_for();
  QVERIFY2(told.find("waited for") != std::string::npos, told.c_str());
  QCOMPARE(received<HubNotice>(mesh.island(2)).back().text, told);
  QVERIFY(!mesh.hub().standstill());
  mesh.start(1);
  mesh.settle();
  wait(mesh, 1);
  QCOMPARE(mesh.hub().waits_for(), std::string());
  QCOMPARE(received<HubNotice>(mesh.island(2)).back().text, std::string());
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

void CoordinatorLossTest::who_alone_held_the_average_and_was_removed_took_it_along_data() {
  QTest::addColumn<bool>("hub_restarts");
  QTest::newRow("at once") << false;
  QTest::newRow("and then the hub restarts") << true;
}

void CoordinatorLossTest::who_alone_held_the_average_and_was_removed_took_it_along() {
  QFETCH(const bool, hub_restarts);
  SimulatedMesh mesh(run_for(1));
  mesh.keeps_states = true;
  begin_first_round(mesh, 1);
  all_ready(mesh, 1);
  have(mesh, 1, 1);
  mesh.start(2);

  mesh.remove(1);
  if (hub_restarts) {
    mesh.restart_hub();
    mesh.link(2);
  }
  wait(mesh, 8);

  QCOMPARE(mesh.hub().committed(), OuterStep{1});
  QVERIFY(mesh.hub().standstill().has_value());
  QCOMPARE(mesh.hub().standstill()->kind, Standstill::Kind::kLost);
  QCOMPARE(mesh.hub().standstill()->back_to, std::optional(OuterStep{0}));
  const std::string& said = mesh.hub().standstill()->text;
  QVERIFY2(said.find("waited for") == std::string::npos, said.c_str());  // it never comes again
  mesh.roll_back(OuterStep{0});
  mesh.settle();
  QVERIFY(mesh.commits().size() > 2);
  QVERIFY(!mesh.hub().standstill().has_value());
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

RunConfig going_back_by_itself() {
  RunConfig run = run_for(2);
  run.when_lost = WhenLost::kRollBack;
  run.lost_after = 3s;
  return run;
}

// Nobody holds what was committed last; what it was.
OuterStep lose_the_newest(SimulatedMesh& mesh) {
  train_a_while(mesh, 2);
  const OuterStep committed = mesh.hub().committed();
  for (int i = 1; i <= 2; ++i) {
    mesh.kill(i);
    lose_since(mesh.island(i), committed);
  }
  mesh.start(1);
  mesh.start(2);
  return committed;
}

void CoordinatorLossTest::a_rollback_by_policy_that_fails_is_tried_again() {
  SimulatedMesh mesh(going_back_by_itself());
  const OuterStep committed = lose_the_newest(mesh);
  mesh.rollbacks_that_fail = 3;

  for (int i = 0; i < 110; ++i) {
    mesh.settle();
    mesh.pass(1s);
  }

  QCOMPARE(mesh.rollbacks_that_fail, -1);
  QCOMPARE(mesh.count<RolledBack>(), 1);
  QVERIFY(mesh.hub().committed() > committed);
}

void CoordinatorLossTest::by_policy_a_run_goes_back_by_itself() {
  SimulatedMesh mesh(going_back_by_itself());
  const OuterStep committed = lose_the_newest(mesh);

  for (int i = 0; i < 10; ++i) {
    mesh.settle();
    mesh.pass(1s);
  }

  QCOMPARE(mesh.count<RolledBack>(), 1);
  QVERIFY(mesh.hub().committed() > committed);
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

void CoordinatorLossTest::by_policy_a_run_never_goes_back_far() {
  RunConfig run = run_for(1);
  run.when_lost = WhenLost::kRollBack;
  run.lost_after = 3s;
  SimulatedMesh mesh(run);
  mesh.keeps_states = true;
  mesh.start(1);
  for (int i = 0; i < 200; ++i) mesh.settle_once();
  QVERIFY(mesh.hub().committed().value > kMostRoundsUndone);
  mesh.kill(1);
  lose_since(mesh.island(1), OuterStep{0});
  mesh.trains_by_itself = false;
  mesh.start(1);

  wait(mesh, 20);

  QCOMPARE(mesh.count<RolledBack>(), 0);
  QVERIFY(mesh.hub().standstill().has_value());
  QCOMPARE(mesh.hub().standstill()->back_to, std::optional(OuterStep{0}));
}

void CoordinatorLossTest::what_a_rollback_undid_is_trained_again() {
  SimulatedMesh mesh(run_for(2));
  train_a_while(mesh, 2);
  mesh.trains_by_itself = false;
  const OuterStep to{mesh.hub().committed().value - 2};
  const auto undone = mesh.committed_leases();

  mesh.roll_back(to);
  deliver(mesh);
  mesh.trains_by_itself = true;
  mesh.settle();

  const auto leases = mesh.committed_leases();
  for (const LeaseRange& lease : undone) QVERIFY(std::ranges::find(leases, lease) != leases.end());
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

void CoordinatorLossTest::a_hub_from_an_old_backup_learns_what_it_missed() {
  SimulatedMesh mesh(run_for(2));
  mesh.keeps_states = true;
  mesh.start(1);
  mesh.start(2);
  for (int i = 0; i < 16; ++i) mesh.settle_once();
  mesh.back_up();
  const std::size_t backed_up = mesh.commits().size();
  for (int i = 0; i < 30; ++i) mesh.settle_once();
  const OuterStep committed = mesh.hub().committed();
  QVERIFY(committed.value > backed_up + 2);

  mesh.restore();
  mesh.link(1);
  mesh.link(2);
  wait(mesh, 61);
  mesh.settle();

  QCOMPARE(mesh.count<FastForwarded>(), 1);
  QVERIFY(mesh.hub().committed() > committed);
  for (int i = 1; i <= 2; ++i) QVERIFY(!mesh.island(i).goodbye.has_value());
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

void CoordinatorLossTest::a_restored_hub_waits_for_those_who_may_know_more() {
  SimulatedMesh mesh(run_for(3));
  mesh.keeps_states = true;
  for (const int i : {1, 2, 4}) mesh.start(i);
  mesh.back_up();
  for (int i = 0; i < 30; ++i) mesh.settle_once();
  const OuterStep committed = mesh.hub().committed();
  mesh.kill(1);
  mesh.island(1).durable.clear();  // it knows nothing any more
  mesh.island(1).newest_commit.reset();

  mesh.restore();
  mesh.start(1);
  mesh.start(3);
  mesh.settle();
  mesh.pass(30s);
  mesh.settle();
  QCOMPARE(mesh.hub().committed(), OuterStep{0});
  mesh.link(2);
  mesh.link(4);
  for (int i = 0; i < 70; ++i) {
    mesh.settle();
    mesh.pass(1s);
  }

  QVERIFY(mesh.hub().committed() >= committed);
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

// One that left long ago shows an old record first: it does not begin a round of its own upon it.
void CoordinatorLossTest::the_newest_of_several_records_counts_whoever_comes_first() {
  SimulatedMesh mesh(run_for(3));
  mesh.keeps_states = true;
  for (int i = 1; i <= 3; ++i) mesh.start(i);
  for (int i = 0; i < 20; ++i) mesh.settle_once();
  mesh.back_up();
  for (int i = 0; i < 20; ++i) mesh.settle_once();
  mesh.cut(3);
  QVERIFY(mesh.island(3).newest_commit.has_value());
  for (int i = 0; i < 60; ++i) {
    mesh.settle_once();
    mesh.pass(1s);
  }
  const OuterStep committed = mesh.hub().committed();
  QVERIFY(committed.value > mesh.island(3).newest_commit->round.value + 3);

  mesh.restore();
  mesh.link(3);
  wait(mesh, 20);
  mesh.link(1);
  mesh.link(2);
  wait(mesh, 61);
  mesh.settle();

  QVERIFY(mesh.count<FastForwarded>() >= 2);
  QVERIFY(mesh.hub().committed() > committed);
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

void CoordinatorLossTest::a_spoiled_state_stays_spoiled_when_the_hub_restarts() {
  RunConfig run = run_for(1);
  run.validate_every = 1;
  SimulatedMesh mesh(run);
  mesh.keeps_states = true;
  mesh.trains_by_itself = false;
  mesh.start(1);
  deliver(mesh);
  const auto round_with_loss = [&](double loss) {
    const OuterStep round = mesh.hub().committed();
    mesh.say(1, IslandValidation{round, loss});
    all_ready(mesh, 1);
    have(mesh, 1, 1, fake_sha256(std::to_string(round.value)));
    deliver(mesh);
    mesh.pass(1s);
    deliver(mesh);
  };
  round_with_loss(2.5);
  round_with_loss(2.4);
  round_with_loss(99);  // doubted
  mesh.say(1, IslandValidation{mesh.hub().committed(), 99});
  QVERIFY(mesh.hub().standstill().has_value());
  QCOMPARE(mesh.hub().standstill()->kind, Standstill::Kind::kSpoiled);

  mesh.restart_hub();
  mesh.link(1);
  wait(mesh, 8);

  QVERIFY(mesh.hub().standstill().has_value());
  QCOMPARE(mesh.hub().standstill()->kind, Standstill::Kind::kSpoiled);
}

void CoordinatorLossTest::a_commit_that_a_rollback_undid_does_not_come_back() {
  SimulatedMesh mesh(run_for(2));
  train_a_while(mesh, 3);
  mesh.cut(3);
  mesh.kill(3);  // with a record of what is undone now
  const OuterStep before = mesh.hub().committed();
  mesh.trains_by_itself = false;
  mesh.roll_back(OuterStep{before.value - 2});
  deliver(mesh);

  mesh.start(3);
  deliver(mesh);

  QCOMPARE(mesh.hub().committed(), OuterStep{before.value - 2});
  QCOMPARE(mesh.count<FastForwarded>(), 0);
  QVERIFY(!mesh.island(3).goodbye.has_value());
  QVERIFY(!mesh.stepped_down);
}

void CoordinatorLossTest::the_older_of_two_hubs_steps_down() {
  SimulatedMesh mesh(run_for(1));
  begin_first_round(mesh, 1);
  IslandConnected event;
  event.entry = RosterEntry{IslandId{"isl-2"}, "isl-2", Address{"10.0.0.2", 2}, fake_sha256("isl-2")};
  event.proven_epoch = 1'000;

  mesh.hub_hears(event);

  QVERIFY(mesh.stepped_down);
}

void CoordinatorLossTest::two_of_three_that_do_not_agree_on_a_state_are_undone_data() {
  QTest::addColumn<bool>("speaks");
  QTest::newRow("another hash") << true;
  QTest::newRow("nothing") << false;
}

// One that lies may be one of the two; the third knows the state before.
void CoordinatorLossTest::two_of_three_that_do_not_agree_on_a_state_are_undone() {
  QFETCH(bool, speaks);
  SimulatedMesh mesh(run_for(3));
  outvote_the_last(mesh, 3);
  QCOMPARE(mesh.count<RolledBack>(), 0);

  if (speaks) mesh.say(2, IslandApplied{OuterStep{1}, std::string(64, 'b')});
  for (int i = 0; i < 20; ++i) mesh.pass(5s);

  QCOMPARE(mesh.count<RolledBack>(), 1);
  QCOMPARE(mesh.hub().committed(), OuterStep{0});
  QVERIFY(!mesh.hub().standstill().has_value());
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

void CoordinatorLossTest::a_state_with_an_honest_majority_waits() {
  SimulatedMesh mesh(run_for(4));
  outvote_the_last(mesh, 4);

  for (int i = 0; i < 20; ++i) mesh.pass(5s);

  QCOMPARE(mesh.count<RolledBack>(), 0);
  mesh.say(2, IslandApplied{OuterStep{1}, std::string(64, 'a')});
  QVERIFY(!mesh.hub().standstill().has_value());
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::CoordinatorLossTest)
#include "coordinator_loss_test.moc"
