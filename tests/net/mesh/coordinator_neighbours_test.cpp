// What islands are told, while they train, of whom the next attempt would have them connect with.
#include <QtTest>
#include <algorithm>

#include "tests/net/mesh/coordinator_script.h"

namespace atl {

class CoordinatorNeighboursTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void each_is_told_its_neighbours_of_the_next_attempt_once_links_are_idle();
  void nothing_is_told_twice_while_nothing_changes();
  void who_gets_another_neighbour_is_told_and_nobody_else();
  void one_that_comes_back_is_told_again();
  void for_each_attempt_they_are_told_anew();
  void a_hub_of_an_old_backup_tells_everybody_what_its_attempt_will_need();
  void an_exchange_is_told_with_all_its_members_and_chooses_nothing();
  void an_island_that_does_not_take_it_is_neither_told_nor_named();
  void an_island_alone_is_told_nothing();
};

using Told = std::vector<HubNeighbours>;

// All dial ahead; the probes of a round that begins are over.
void begin_and_wait(SimulatedMesh& mesh, int islands) {
  for (int i = 1; i <= islands; ++i) mesh.island(i).dials_ahead = true;
  begin_first_round(mesh, islands);
  for (int i = 0; i < 3; ++i) mesh.pass(4s);
  deliver(mesh);
}

Told told(SimulatedMesh& mesh, int island) { return received<HubNeighbours>(mesh.island(island)); }

std::vector<std::size_t> counts(SimulatedMesh& mesh, int islands) {
  std::vector<std::size_t> found;
  for (int i = 1; i <= islands; ++i) found.push_back(told(mesh, i).size());
  return found;
}

std::vector<IslandId> ids_of(const std::vector<AttemptMember>& order) {
  std::vector<IslandId> ids;
  for (const AttemptMember& member : order) ids.push_back(member.id);
  return ids;
}

void CoordinatorNeighboursTest::each_is_told_its_neighbours_of_the_next_attempt_once_links_are_idle() {
  SimulatedMesh mesh(run_for(5), {1'000'000});
  for (int i = 1; i <= 5; ++i) mesh.island(i).dials_ahead = true;
  begin_first_round(mesh, 5);
  std::size_t probes = 0;
  for (int i = 1; i <= 5; ++i) probes += received<HubProbe>(mesh.island(i)).size();
  QVERIFY(probes > 0);
  QCOMPARE(counts(mesh, 5), std::vector<std::size_t>(5, 0));

  for (int i = 0; i < 3; ++i) mesh.pass(4s);
  deliver(mesh);

  QCOMPARE(counts(mesh, 5), std::vector<std::size_t>(5, 1));
  all_ready(mesh, 5);
  const HubAttempt attempt = received<HubAttempt>(mesh.island(1)).at(0);
  for (std::size_t rank = 0; rank < 5; ++rank) {
    int number = 1;
    while (mesh.island(number).id != attempt.order[rank].id) ++number;
    const HubNeighbours neighbours = told(mesh, number).at(0);
    QCOMPARE(ids_of(neighbours.order), (std::vector<IslandId>{attempt.order[(rank + 4) % 5].id, attempt.order[rank].id,
                                                              attempt.order[(rank + 1) % 5].id}));
    QCOMPARE(neighbours.schedule, attempt.schedule);
    QVERIFY(neighbours.bytes_to_each > 1'500'000 && neighbours.bytes_to_each < 1'700'000);  // 8/5, and the scales
  }
}

void CoordinatorNeighboursTest::nothing_is_told_twice_while_nothing_changes() {
  SimulatedMesh mesh(run_for(5));
  begin_and_wait(mesh, 5);

  for (int i = 0; i < 100; ++i) mesh.pass(1s);
  deliver(mesh);

  QCOMPARE(counts(mesh, 5), std::vector<std::size_t>(5, 1));
}

void CoordinatorNeighboursTest::who_gets_another_neighbour_is_told_and_nobody_else() {
  SimulatedMesh mesh(run_for(5));
  begin_and_wait(mesh, 5);

  mesh.kill(3);
  for (int i = 0; i < 10; ++i) mesh.pass(1s);
  deliver(mesh);

  QCOMPARE(counts(mesh, 5), (std::vector<std::size_t>{1, 2, 0, 2, 1}));  // 3 is dead, and forgot
  QCOMPARE(told(mesh, 2).back().order.back().id, mesh.island(4).id);
}

void CoordinatorNeighboursTest::one_that_comes_back_is_told_again() {
  SimulatedMesh mesh(run_for(5));
  begin_and_wait(mesh, 5);

  mesh.cut(3);
  mesh.link(3);
  mesh.pass(1s);
  mesh.pass(1s);
  deliver(mesh);

  QCOMPARE(counts(mesh, 5), (std::vector<std::size_t>{1, 1, 2, 1, 1}));
}

void CoordinatorNeighboursTest::for_each_attempt_they_are_told_anew() {
  SimulatedMesh mesh(run_for(2));
  begin_and_wait(mesh, 2);
  QCOMPARE(counts(mesh, 2), std::vector<std::size_t>(2, 1));

  commit_rounds(mesh, 1);
  deliver(mesh);
  mesh.pass(1s);
  deliver(mesh);

  QVERIFY(told(mesh, 1).size() > 1);
  QCOMPARE(ids_of(told(mesh, 1).back().order), ids_of(told(mesh, 1).front().order));
}

// One joined since, and it has heard nothing of links.
void CoordinatorNeighboursTest::a_hub_of_an_old_backup_tells_everybody_what_its_attempt_will_need() {
  SimulatedMesh mesh(run_for(4));
  mesh.keeps_states = true;
  begin_and_wait(mesh, 4);
  commit_rounds(mesh, 1);
  mesh.back_up();
  mesh.island(5).dials_ahead = true;
  mesh.start(5);
  commit_rounds(mesh, 2);
  deliver(mesh);
  const OuterStep committed = mesh.hub().committed();
  std::vector<std::size_t> heard;
  for (int i = 1; i <= 5; ++i) heard.push_back(mesh.island(i).received.size());

  mesh.restore();
  for (int i = 1; i <= 5; ++i) mesh.link(i);
  for (int i = 0; i < 80; ++i) {
    deliver(mesh);
    mesh.pass(1s);
  }
  deliver(mesh);
  commit_rounds(mesh, 1);
  deliver(mesh);

  QVERIFY(mesh.hub().committed() > committed);
  for (int i = 1; i <= 5; ++i) {
    const auto& received_by = mesh.island(i).received;
    std::optional<HubNeighbours> newest;
    std::optional<HubAttempt> attempt;
    for (std::size_t at = heard[static_cast<std::size_t>(i - 1)]; at < received_by.size() && !attempt; ++at) {
      if (const auto* one = std::get_if<HubNeighbours>(&received_by[at])) newest = *one;
      if (const auto* one = std::get_if<HubAttempt>(&received_by[at])) attempt = *one;
    }
    QVERIFY(newest && attempt);
    QCOMPARE(attempt->order.size(), std::size_t{5});
    const IslandId& self = mesh.island(i).id;
    const auto rank = std::ranges::find(attempt->order, self, &AttemptMember::id) - attempt->order.begin();
    const auto id_at = [&](std::ptrdiff_t at) { return attempt->order[static_cast<std::size_t>(at % 5)].id; };
    QCOMPARE(ids_of(newest->order), (std::vector<IslandId>{id_at(rank + 4), self, id_at(rank + 1)}));
    QCOMPARE(newest->schedule, attempt->schedule);
  }
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

void CoordinatorNeighboursTest::an_exchange_is_told_with_all_its_members_and_chooses_nothing() {
  SimulatedMesh mesh(run_for(5), small_fragments(1));
  begin_and_wait(mesh, 5);
  QCOMPARE(told(mesh, 1).back().schedule, Schedule::kRing);

  measure_long_links(mesh, 5);
  for (int i = 0; i < 20; ++i) mesh.pass(1s);
  deliver(mesh);

  for (int i = 1; i <= 5; ++i) {
    QCOMPARE(told(mesh, i).back().schedule, Schedule::kDirect);
    QCOMPARE(told(mesh, i).back().order.size(), std::size_t{5});
  }
  QCOMPARE(counts(mesh, 5), std::vector<std::size_t>(5, 2));
}

void CoordinatorNeighboursTest::an_island_that_does_not_take_it_is_neither_told_nor_named() {
  SimulatedMesh mesh(run_for(5));
  for (const int number : {1, 2, 4, 5}) mesh.island(number).dials_ahead = true;
  begin_first_round(mesh, 5);
  for (int i = 0; i < 3; ++i) mesh.pass(4s);
  deliver(mesh);

  QCOMPARE(counts(mesh, 5), (std::vector<std::size_t>{1, 0, 0, 0, 1}));
}

void CoordinatorNeighboursTest::an_island_alone_is_told_nothing() {
  SimulatedMesh mesh(run_for(1));
  begin_and_wait(mesh, 1);

  QVERIFY(told(mesh, 1).empty());
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::CoordinatorNeighboursTest)
#include "coordinator_neighbours_test.moc"
