// Which data is trained: mixtures that the run's organiser decides while it lives, and leases whose data cannot be had.
#include <QtTest>

#include "tests/net/mesh/coordinator_script.h"

namespace atl {
namespace {

const MixtureWeights kWeights{250'000'000, 750'000'000};
const DecidedMixture kMixture{2, kWeights};

std::map<std::uint32_t, HubRoundBegin> told_by_round(SimulatedMesh& mesh, int island) {
  std::map<std::uint32_t, HubRoundBegin> told;
  for (const HubRoundBegin& begin : received<HubRoundBegin>(mesh.island(island))) told[begin.round.value] = begin;
  return told;
}

void train_until(SimulatedMesh& mesh, std::uint32_t round) {
  for (int i = 0; i < 400 && mesh.hub().next_round().value <= round; ++i) mesh.settle_once();
  deliver(mesh);
}

HubRoundBegin last_begun(SimulatedMesh& mesh, int island) {
  const auto begun = received<HubRoundBegin>(mesh.island(island));
  return begun.empty() ? HubRoundBegin{} : begun.back();
}

void return_lease(SimulatedMesh& mesh, int island) {
  const HubRoundBegin begun = last_begun(mesh, island);
  mesh.say(island, IslandLeaseReturned{begun.round, begun.lease_first_sequence, "the mirror is away", begun.fragment});
  deliver(mesh);
}

}  // namespace

class CoordinatorDataTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_mixture_begins_where_nothing_was_leased_yet();
  void an_island_is_told_where_its_next_lease_may_begin();
  void it_is_taken_back_or_replaced_while_it_has_not_begun();
  void a_hub_that_restarts_remembers_mixtures();
  void a_rollback_leaves_mixtures();
  void a_hub_of_an_old_backup_learns_mixtures_from_records();
  void who_cannot_get_its_data_gets_another_lease_once();
  void others_go_on_without_it();
  void what_was_returned_is_trained_later_and_committed_once();
  void who_is_ready_returns_nothing();
  void a_lease_that_it_does_not_hold_cannot_be_returned();
  void where_nobody_gets_data_the_run_says_so_and_tries_again();
  void a_restart_of_the_hub_loses_no_returned_lease();
};

void CoordinatorDataTest::a_mixture_begins_where_nothing_was_leased_yet() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  mesh.hub_hears(DecideMixture{kMixture});
  train_until(mesh, 3);

  for (int island = 1; island <= 2; ++island) {
    const auto told = told_by_round(mesh, island);
    QVERIFY(told.at(0).mixture.empty() && told.at(1).mixture.empty());
    QCOMPARE(told.at(2).mixture.size(), std::size_t{1});
    const MixtureEra& era = told.at(2).mixture.front();
    QCOMPARE(era.weights, kWeights);
    QVERIFY(told.at(1).lease_first_sequence < era.from_position);
    QVERIFY(told.at(2).lease_first_sequence >= era.from_position);
    QVERIFY(told.at(3).mixture == told.at(2).mixture);
  }
  QVERIFY(!mesh.hub().mixture().decided);
  QVERIFY(mesh.commits().back().mixture == mesh.hub().mixture().eras);  // signed
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

void CoordinatorDataTest::an_island_is_told_where_its_next_lease_may_begin() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  train_until(mesh, 2);
  for (int island = 1; island <= 3; ++island) {
    const auto told = told_by_round(mesh, island);
    for (std::uint32_t round : {0u, 1u}) {
      QCOMPARE(told.at(round).expected_sequence, std::optional(told.at(round + 1).lease_first_sequence));
    }
  }
}

void CoordinatorDataTest::it_is_taken_back_or_replaced_while_it_has_not_begun() {
  SimulatedMesh mesh(run_for(1));
  begin_first_round(mesh, 1);
  mesh.hub_hears(DecideMixture{DecidedMixture{0, kWeights}});  // has begun
  QVERIFY(!mesh.hub().mixture().decided);
  mesh.hub_hears(DecideMixture{kMixture});
  mesh.hub_hears(DecideMixture{DecidedMixture{3, {kMixtureParts, 0}}});
  train_until(mesh, 2);
  QVERIFY(mesh.hub().mixture().eras.empty());
  mesh.hub_hears(DecideMixture{});
  train_until(mesh, 4);
  QVERIFY(mesh.hub().mixture().eras.empty());
}

void CoordinatorDataTest::a_hub_that_restarts_remembers_mixtures() {
  SimulatedMesh mesh(run_for(1));
  mesh.keeps_states = true;
  begin_first_round(mesh, 1);
  mesh.hub_hears(DecideMixture{DecidedMixture{1, kWeights}});
  train_until(mesh, 1);
  mesh.hub_hears(DecideMixture{DecidedMixture{4, {kMixtureParts, 0}}});
  const RunMixture before = mesh.hub().mixture();
  mesh.restart_hub();
  QVERIFY(mesh.hub().mixture() == before);
  mesh.link(1);
  train_until(mesh, 4);
  QCOMPARE(mesh.hub().mixture().eras.size(), std::size_t{2});
  QVERIFY(told_by_round(mesh, 1).at(4).mixture == mesh.hub().mixture().eras);
}

// Positions keep their source, whoever trains them again and when.
void CoordinatorDataTest::a_rollback_leaves_mixtures() {
  SimulatedMesh mesh(run_for(1));
  mesh.keeps_states = true;
  begin_first_round(mesh, 1);
  mesh.hub_hears(DecideMixture{kMixture});
  train_until(mesh, 3);
  const auto eras = mesh.hub().mixture().eras;
  mesh.roll_back(OuterStep{1});
  train_until(mesh, 3);
  QVERIFY(mesh.hub().mixture().eras == eras);
}

void CoordinatorDataTest::a_hub_of_an_old_backup_learns_mixtures_from_records() {
  SimulatedMesh mesh(run_for(1));
  mesh.keeps_states = true;
  begin_first_round(mesh, 1);
  mesh.back_up();
  mesh.hub_hears(DecideMixture{DecidedMixture{1, kWeights}});
  train_until(mesh, 3);
  const auto eras = mesh.hub().mixture().eras;
  QCOMPARE(eras.size(), std::size_t{1});
  mesh.restore();
  QVERIFY(mesh.hub().mixture().eras.empty());
  mesh.link(1);
  deliver(mesh);
  QVERIFY(mesh.hub().mixture().eras == eras);
}

void CoordinatorDataTest::who_cannot_get_its_data_gets_another_lease_once() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  const HubRoundBegin first = last_begun(mesh, 1);
  return_lease(mesh, 1);
  const HubRoundBegin second = last_begun(mesh, 1);
  QCOMPARE(second.round, first.round);
  QCOMPARE(second.inner_steps, first.inner_steps);
  QVERIFY(second.lease_first_sequence != first.lease_first_sequence);
  QCOMPARE(mesh.count<WorkLeftOut>(), 1);
  return_lease(mesh, 1);
  QCOMPARE(last_begun(mesh, 1).inner_steps, 0u);  // now it only receives
}

void CoordinatorDataTest::others_go_on_without_it() {
  SimulatedMesh mesh(run_for(3));
  mesh.island(1).lies.no_data = true;
  begin_first_round(mesh, 3);
  train_until(mesh, 4);
  QVERIFY(mesh.hub().committed().value >= 3);
  for (const HubCommit& commit : mesh.commits()) QVERIFY(commit.members.size() >= 2);
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

void CoordinatorDataTest::what_was_returned_is_trained_later_and_committed_once() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  const LeaseRange returned{last_begun(mesh, 1).lease_first_sequence, last_begun(mesh, 1).lease_sequences};
  return_lease(mesh, 1);
  train_until(mesh, 3);
  QCOMPARE(std::ranges::count(mesh.committed_leases(), returned), 0);  // not at once: others come first
  train_until(mesh, 9);
  QCOMPARE(std::ranges::count(mesh.committed_leases(), returned), 1);
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

void CoordinatorDataTest::who_is_ready_returns_nothing() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  mesh.island(1).lane().inner_done = true;
  mesh.say(1, ready_for(0));
  const auto before = received<HubRoundBegin>(mesh.island(1)).size();
  return_lease(mesh, 1);
  QCOMPARE(received<HubRoundBegin>(mesh.island(1)).size(), before);
}

void CoordinatorDataTest::a_lease_that_it_does_not_hold_cannot_be_returned() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  const auto before = received<HubRoundBegin>(mesh.island(1)).size();
  mesh.say(1, IslandLeaseReturned{OuterStep{0}, last_begun(mesh, 2).lease_first_sequence, "it is another's"});
  mesh.say(1, IslandLeaseReturned{OuterStep{7}, last_begun(mesh, 1).lease_first_sequence, "of no round"});
  deliver(mesh);
  QCOMPARE(received<HubRoundBegin>(mesh.island(1)).size(), before);
}

void CoordinatorDataTest::where_nobody_gets_data_the_run_says_so_and_tries_again() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  for (int island : {1, 2, 1, 2}) return_lease(mesh, island);
  mesh.tick();
  QVERIFY(mesh.hub().standstill().has_value());
  QCOMPARE(mesh.hub().standstill()->kind, Standstill::Kind::kNoData);
  const auto asked = received<HubRoundBegin>(mesh.island(1)).size();
  for (int i = 0; i < 5; ++i) mesh.pass(1s), deliver(mesh);
  QCOMPARE(received<HubRoundBegin>(mesh.island(1)).size(), asked);  // not at once
  for (int i = 0; i < 20; ++i) mesh.pass(2s), deliver(mesh);
  QVERIFY(received<HubRoundBegin>(mesh.island(1)).size() > asked);
  QVERIFY(last_begun(mesh, 1).inner_steps > 0);
  train_until(mesh, 2);
  QVERIFY(!mesh.hub().standstill());
  QVERIFY(mesh.hub().committed().value >= 1);
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

void CoordinatorDataTest::a_restart_of_the_hub_loses_no_returned_lease() {
  SimulatedMesh mesh(run_for(1));
  mesh.keeps_states = true;
  begin_first_round(mesh, 1);
  const LeaseRange returned{last_begun(mesh, 1).lease_first_sequence, last_begun(mesh, 1).lease_sequences};
  return_lease(mesh, 1);
  mesh.restart_hub();
  mesh.link(1);
  train_until(mesh, 6);
  QCOMPARE(std::ranges::count(mesh.committed_leases(), returned), 1);
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::CoordinatorDataTest)
#include "coordinator_data_test.moc"
