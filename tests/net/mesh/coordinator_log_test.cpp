// The round log: who comes back with states that are many rounds old goes on from the committed one, and where that
// cannot be, the run says so.
#include <QtTest>

#include "tests/net/mesh/coordinator_script.h"

namespace atl {
namespace {

// The newest whole state of each island is some rounds behind what was committed: a lower bound of them.
constexpr std::uint32_t kBehind = 6;

// Everybody trains; then everybody is dead, so many rounds after the newest whole state.
void train_and_die(SimulatedMesh& mesh, int islands) {
  mesh.keeps_states = true;
  mesh.snapshot_every = 1'000;
  for (int i = 1; i <= islands; ++i) mesh.start(i);
  for (int i = 0; i < 400 && mesh.commits().size() < kBehind + 2; ++i) mesh.settle_once();
  deliver(mesh);  // a round that no island heard to be committed is known to this hub alone
  for (int i = 1; i <= islands; ++i) mesh.kill(i);
  for (int i = 1; i <= islands; ++i) QVERIFY(mesh.island(i).durable.back().outer_step == OuterStep{0});
  QVERIFY(mesh.hub().committed().value > kBehind);
}

void go_on(SimulatedMesh& mesh, int seconds) {
  for (int i = 0; i < seconds; ++i) {
    mesh.settle();
    mesh.pass(1s);
  }
}

// Committed rounds are as they were, and the newest state is what they make.
void verify_nothing_was_lost(const SimulatedMesh& mesh, const std::vector<HubCommit>& before) {
  QVERIFY(mesh.commits().size() > before.size() + 1);
  for (std::size_t i = 0; i < mesh.commits().size(); ++i)
    QCOMPARE(mesh.commits()[i].round, OuterStep{static_cast<std::uint32_t>(i)});
  QCOMPARE(mesh.count<RolledBack>(), 0);
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

}  // namespace

class CoordinatorLogTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void who_comes_back_many_rounds_behind_goes_on_from_the_committed_state_data();
  void who_comes_back_many_rounds_behind_goes_on_from_the_committed_state();
  void who_lacks_an_average_in_the_middle_gets_the_state_from_others_data();
  void who_lacks_an_average_in_the_middle_gets_the_state_from_others();
  void where_nobody_has_an_average_the_standstill_names_the_newest_state_that_is_left_data();
  void where_nobody_has_an_average_the_standstill_names_the_newest_state_that_is_left();
  void where_no_state_was_ever_written_averages_lead_on_from_the_beginning_data();
  void where_no_state_was_ever_written_averages_lead_on_from_the_beginning();
  void who_has_no_averages_either_is_not_led_from_the_beginning_twice();
  void what_an_island_says_to_have_replayed_is_one_word_among_others();
  void who_claims_a_later_step_than_was_committed_is_not_believed_data();
  void who_claims_a_later_step_than_was_committed_is_not_believed();
  void with_two_another_hash_of_a_step_that_was_agreed_on_is_not_believed();
};

void CoordinatorLogTest::who_comes_back_many_rounds_behind_goes_on_from_the_committed_state_data() {
  QTest::addColumn<int>("islands");
  QTest::addColumn<quint32>("fragments");
  QTest::addColumn<bool>("by_itself");
  QTest::addColumn<bool>("old_hub");
  for (const int islands : {1, 2, 3}) {
    for (const quint32 fragments : {1u, 2u, 4u}) {
      for (const bool by_itself : {true, false}) {
        QTest::addRow("%d islands, %u fragments, %s", islands, fragments, by_itself ? "replayed" : "led by the hub")
            << islands << fragments << by_itself << false;
      }
      QTest::addRow("%d islands, %u fragments, an old hub", islands, fragments) << islands << fragments << true << true;
    }
  }
}

void CoordinatorLogTest::who_comes_back_many_rounds_behind_goes_on_from_the_committed_state() {
  QFETCH(const int, islands);
  QFETCH(const quint32, fragments);
  QFETCH(const bool, by_itself);
  QFETCH(const bool, old_hub);
  RunConfig run = run_for(static_cast<std::uint32_t>(islands));
  run.fragments = fragments;
  SimulatedMesh mesh(run);
  mesh.replays_by_itself = by_itself;
  mesh.back_up();
  train_and_die(mesh, islands);
  const std::vector<HubCommit> before = mesh.commits();

  old_hub ? mesh.restore() : mesh.restart_hub();
  for (int i = 1; i <= islands; ++i) mesh.start(i);
  go_on(mesh, old_hub ? 70 : 10);

  verify_nothing_was_lost(mesh, before);
  QCOMPARE(mesh.count<FastForwarded>() > 0, old_hub);
  for (int i = 1; i <= islands; ++i) {
    QVERIFY(received<HubRecover>(mesh.island(i)).empty());
    const OuterStep held = *mesh.island(i).outer_step;
    QCOMPARE(mesh.island(i).state_hash, mesh.honest_hashes.at(held.value));
  }
}

void CoordinatorLogTest::who_lacks_an_average_in_the_middle_gets_the_state_from_others_data() {
  QTest::addColumn<bool>("by_itself");
  QTest::newRow("replayed") << true;
  QTest::newRow("led by the hub") << false;
}

void CoordinatorLogTest::who_lacks_an_average_in_the_middle_gets_the_state_from_others() {
  QFETCH(const bool, by_itself);
  for (const quint32 fragments : {1u, 2u}) {
    RunConfig run = run_for(3);
    run.fragments = fragments;
    SimulatedMesh mesh(run);
    mesh.replays_by_itself = by_itself;
    train_and_die(mesh, 3);
    const std::vector<HubCommit> before = mesh.commits();
    mesh.island(2).logged.erase(OuterStep{3});

    mesh.restart_hub();
    for (int i = 1; i <= 3; ++i) mesh.start(i);
    std::mt19937 random(fragments);
    // Only in some order of things does it come to train with the others: here they take no time for theirs.
    const auto all_train = [&] {
      return mesh.commits().back().members.size() == 3 && mesh.island(2).said_ready.size() > 2;
    };
    for (int i = 0; i < 40 && !all_train(); ++i) {
      mesh.settle_randomly(random, 600);
      mesh.pass(1s);
    }

    verify_nothing_was_lost(mesh, before);
    QVERIFY(!received<HubRecover>(mesh.island(2)).empty());
    for (const int other : {1, 3}) QVERIFY(received<HubRecover>(mesh.island(other)).empty());
    QVERIFY(all_train());
  }
}

void CoordinatorLogTest::where_nobody_has_an_average_the_standstill_names_the_newest_state_that_is_left_data() {
  QTest::addColumn<int>("islands");
  QTest::addColumn<bool>("by_itself");
  for (const int islands : {2, 3}) {
    QTest::addRow("%d islands, replayed", islands) << islands << true;
    QTest::addRow("%d islands, led by the hub", islands) << islands << false;
  }
}

void CoordinatorLogTest::where_nobody_has_an_average_the_standstill_names_the_newest_state_that_is_left() {
  QFETCH(const int, islands);
  QFETCH(const bool, by_itself);
  SimulatedMesh mesh(run_for(static_cast<std::uint32_t>(islands)));
  mesh.replays_by_itself = by_itself;
  train_and_die(mesh, islands);
  const OuterStep committed = mesh.hub().committed();
  mesh.restart_hub();
  for (int i = 1; i <= islands; ++i) {
    mesh.island(i).logged.erase(OuterStep{4});
    mesh.start(i);
  }
  mesh.trains_by_itself = false;
  for (int i = 0; i < 61; ++i) {
    mesh.pass(1s);
    deliver(mesh);
  }

  QVERIFY(mesh.hub().standstill().has_value());
  QCOMPARE(mesh.hub().standstill()->back_to, std::optional(OuterStep{4}));
  QVERIFY(mesh.hub().standstill()->text.find("atoll hub rollback --to 4") != std::string::npos);
  mesh.roll_back(OuterStep{4});
  mesh.trains_by_itself = true;
  go_on(mesh, 5);
  QVERIFY(mesh.hub().committed() > committed);
  QCOMPARE(mesh.commits().back().members.size(), static_cast<std::size_t>(islands));
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

void CoordinatorLogTest::where_no_state_was_ever_written_averages_lead_on_from_the_beginning_data() {
  QTest::addColumn<int>("islands");
  QTest::addColumn<quint32>("fragments");
  for (const int islands : {1, 2, 3}) {
    for (const quint32 fragments : {1u, 2u}) {
      QTest::addRow("%d islands, %u fragments", islands, fragments) << islands << fragments;
    }
  }
}

void CoordinatorLogTest::where_no_state_was_ever_written_averages_lead_on_from_the_beginning() {
  QFETCH(const int, islands);
  QFETCH(const quint32, fragments);
  RunConfig run = run_for(static_cast<std::uint32_t>(islands));
  run.fragments = fragments;
  SimulatedMesh mesh(run);
  train_and_die(mesh, islands);
  const std::vector<HubCommit> before = mesh.commits();
  for (int i = 1; i <= islands; ++i) mesh.island(i).durable.clear();

  mesh.restart_hub();
  for (int i = 1; i <= islands; ++i) mesh.start(i);
  go_on(mesh, 10);

  verify_nothing_was_lost(mesh, before);
  for (int i = 1; i <= islands; ++i) {
    QCOMPARE(mesh.island(i).state_hash, mesh.honest_hashes.at(mesh.island(i).outer_step->value));
  }
}

// Nobody has anything: that is a standstill as ever. With another's disk the run goes on.
void CoordinatorLogTest::who_has_no_averages_either_is_not_led_from_the_beginning_twice() {
  SimulatedMesh mesh(run_for(2));
  train_and_die(mesh, 2);
  const std::vector<HubCommit> before = mesh.commits();
  SimulatedMesh::Island& wiped = mesh.island(1);
  wiped.durable.clear();
  wiped.logged.clear();
  for (auto& lane : wiped.lanes) lane.kept_average.reset();

  mesh.restart_hub();
  mesh.start(1);
  go_on(mesh, 70);

  QCOMPARE(received<HubInitialise>(mesh.island(1)).size(), std::size_t{1});
  QVERIFY(mesh.hub().standstill().has_value());
  QCOMPARE(mesh.commits().size(), before.size());
  mesh.start(2);
  go_on(mesh, 20);
  verify_nothing_was_lost(mesh, before);
}

void CoordinatorLogTest::what_an_island_says_to_have_replayed_is_one_word_among_others() {
  for (const bool by_itself : {true, false}) {
    SimulatedMesh mesh(run_for(3));
    mesh.replays_by_itself = by_itself;
    train_and_die(mesh, 3);
    const std::vector<HubCommit> before = mesh.commits();
    mesh.island(1).lies.state_hash = true;

    mesh.restart_hub();
    mesh.start(1);  // it comes first, and alone
    go_on(mesh, 3);
    QCOMPARE(mesh.commits().size(), before.size());
    mesh.start(2);
    mesh.start(3);
    go_on(mesh, 10);

    verify_nothing_was_lost(mesh, before);
  }
}

void CoordinatorLogTest::who_claims_a_later_step_than_was_committed_is_not_believed_data() {
  QTest::addColumn<int>("islands");
  QTest::addColumn<bool>("knows_the_hash");
  for (const int islands : {2, 3}) {
    QTest::addRow("%d islands, honest but for the step", islands) << islands << true;
    QTest::addRow("%d islands, with a hash of its own", islands) << islands << false;
  }
}

// It comes first and alone, after all lost their power. At best it trains on from the committed state, which it has.
void CoordinatorLogTest::who_claims_a_later_step_than_was_committed_is_not_believed() {
  QFETCH(const int, islands);
  QFETCH(const bool, knows_the_hash);
  SimulatedMesh mesh(run_for(static_cast<std::uint32_t>(islands)));
  train_and_die(mesh, islands);
  const std::vector<HubCommit> before = mesh.commits();
  const OuterStep committed = mesh.hub().committed();
  mesh.island(1).lies.step = true;
  mesh.island(1).lies.state_hash = !knows_the_hash;

  mesh.restart_hub();
  mesh.start(1);
  deliver(mesh);

  QCOMPARE(mesh.hub().committed(), committed);
  QCOMPARE(mesh.count<FastForwarded>(), 0);
  for (int i = 2; i <= islands; ++i) mesh.start(i);
  go_on(mesh, 5);
  mesh.island(1).lies = {};
  mesh.start(1);
  go_on(mesh, 5);
  QCOMPARE(mesh.count<FastForwarded>(), 0);
  verify_nothing_was_lost(mesh, before);
  for (int i = 1; i <= islands; ++i) {
    QCOMPARE(mesh.island(i).state_hash, mesh.honest_hashes.at(mesh.island(i).outer_step->value));
  }
}

// Where the hub did not learn the hash before, it is a standstill (coordinator_trust_test).
void CoordinatorLogTest::with_two_another_hash_of_a_step_that_was_agreed_on_is_not_believed() {
  for (const bool by_itself : {true, false}) {
    SimulatedMesh mesh(run_for(2));
    mesh.replays_by_itself = by_itself;
    train_and_die(mesh, 2);
    const std::vector<HubCommit> before = mesh.commits();
    mesh.island(1).lies.state_hash = true;

    mesh.restart_hub();
    mesh.start(1);
    go_on(mesh, 5);
    QCOMPARE(mesh.commits().size(), before.size());
    mesh.start(2);
    go_on(mesh, 5);

    verify_nothing_was_lost(mesh, before);
    QCOMPARE(mesh.island(2).state_hash, mesh.honest_hashes.at(mesh.island(2).outer_step->value));
  }
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::CoordinatorLogTest)
#include "coordinator_log_test.moc"
