// A decay of the learning rate that the run's organiser decides while it lives.
#include <QtTest>

#include "tests/net/mesh/coordinator_script.h"

namespace atl {
namespace {

const DecidedDecay kDecay{.from_round = 2, .rounds = 5, .final_learning_rate = 1e-4, .shape = DecayShape::kLinear};

std::map<std::uint32_t, std::optional<DecidedDecay>> told_by_round(SimulatedMesh& mesh, int island) {
  std::map<std::uint32_t, std::optional<DecidedDecay>> told;
  for (const HubRoundBegin& begin : received<HubRoundBegin>(mesh.island(island))) {
    told[begin.round.value] = begin.decay;
  }
  return told;
}

void train_until(SimulatedMesh& mesh, std::uint32_t round) {
  for (int i = 0; i < 200 && mesh.hub().next_round().value <= round; ++i) mesh.settle_once();
  deliver(mesh);
}

}  // namespace

class CoordinatorDecayTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void it_is_told_with_the_rounds_that_begin_afterwards();
  void a_round_that_has_begun_cannot_be_asked_for();
  void it_can_be_taken_back();
  void a_hub_that_restarts_remembers_it();
  void a_rollback_leaves_it();
};

void CoordinatorDecayTest::it_is_told_with_the_rounds_that_begin_afterwards() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  mesh.hub_hears(DecideDecay{kDecay});
  train_until(mesh, 3);
  for (int island = 1; island <= 2; ++island) {
    const auto told = told_by_round(mesh, island);
    QVERIFY(told.at(0) == std::nullopt);  // it had begun
    for (std::uint32_t round = 1; round <= 3; ++round) QVERIFY(told.at(round) == kDecay);
  }
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

void CoordinatorDecayTest::a_round_that_has_begun_cannot_be_asked_for() {
  SimulatedMesh mesh(run_for(1));
  begin_first_round(mesh, 1);
  QCOMPARE(mesh.hub().next_round(), OuterStep{1});
  mesh.hub_hears(DecideDecay{DecidedDecay{.from_round = 0, .rounds = 5}});
  QVERIFY(!mesh.hub().decay());
  mesh.hub_hears(DecideDecay{DecidedDecay{.from_round = 1, .rounds = 5}});
  QVERIFY(mesh.hub().decay());
}

void CoordinatorDecayTest::it_can_be_taken_back() {
  SimulatedMesh mesh(run_for(1));
  begin_first_round(mesh, 1);
  mesh.hub_hears(DecideDecay{kDecay});
  mesh.hub_hears(DecideDecay{});
  train_until(mesh, 3);
  QVERIFY(told_by_round(mesh, 1).at(3) == std::nullopt);
}

void CoordinatorDecayTest::a_hub_that_restarts_remembers_it() {
  SimulatedMesh mesh(run_for(1));
  mesh.keeps_states = true;
  begin_first_round(mesh, 1);
  mesh.hub_hears(DecideDecay{kDecay});
  mesh.restart_hub();
  QVERIFY(mesh.hub().decay() == kDecay);
  mesh.link(1);
  train_until(mesh, 2);
  QVERIFY(told_by_round(mesh, 1).at(2) == kDecay);
}

// The rounds that are trained again fall as they fell before.
void CoordinatorDecayTest::a_rollback_leaves_it() {
  SimulatedMesh mesh(run_for(1));
  mesh.keeps_states = true;
  begin_first_round(mesh, 1);
  mesh.hub_hears(DecideDecay{kDecay});
  train_until(mesh, 3);
  mesh.roll_back(OuterStep{1});
  train_until(mesh, 2);
  QVERIFY(mesh.hub().decay() == kDecay);
  QVERIFY(told_by_round(mesh, 1).at(2) == kDecay);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::CoordinatorDecayTest)
#include "coordinator_decay_test.moc"
