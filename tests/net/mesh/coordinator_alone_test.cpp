// Who is first, or left alone, decides nothing for the others; and nobody is left waiting for ever.
#include <QtTest>

#include "tests/net/mesh/coordinator_script.h"

namespace atl {
namespace {

void wait(SimulatedMesh& mesh, int seconds) {
  for (int i = 0; i < seconds; ++i) {
    mesh.pass(1s);
    deliver(mesh);
  }
}

void accuse(SimulatedMesh& mesh, int reporter, int peer, std::uint32_t attempt) {
  mesh.say(reporter, IslandAttemptFailed{mesh.hub().committed(), Attempt{attempt}, mesh.island(peer).id, "is silent"});
  wait(mesh, 7);  // those who do not answer the abort are not waited for; and the pause after it
}

std::vector<IslandId> last_order(SimulatedMesh& mesh, int island) {
  std::vector<IslandId> ids;
  const std::vector<HubAttempt> attempts = received<HubAttempt>(mesh.island(island));
  for (const AttemptMember& member : attempts.back().order) ids.push_back(member.id);
  std::ranges::sort(ids);
  return ids;
}

std::uint32_t last_attempt(SimulatedMesh& mesh, int island) {
  return received<HubAttempt>(mesh.island(island)).back().attempt.value;
}

}  // namespace

class CoordinatorAloneTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void who_is_ready_first_closes_no_round();
  void of_two_the_one_that_is_never_ready_is_named();
  void a_quorum_takes_back_who_sat_out_for_an_edge();
  void who_accuses_everybody_sits_out_and_nobody_else();
  void whoever_is_first_after_a_way_back_does_not_train_alone();
  void who_comes_soon_trains_where_few_do();
  void a_silent_trainer_does_not_keep_the_others_waiting_for_ever();
  void buckets_of_a_failed_attempt_prove_nothing();
  void a_hub_restored_amid_a_round_waits_for_those_who_may_know_more();
  void a_rollback_before_the_step_is_taken_leaves_everybody_whole();
};

void CoordinatorAloneTest::who_is_ready_first_closes_no_round() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  mesh.trains_by_itself = false;

  mesh.say(3, ready_for(0));
  wait(mesh, 200);

  QVERIFY(received<HubAttempt>(mesh.island(3)).empty());
  mesh.say(1, ready_for(0));
  wait(mesh, 59);
  QVERIFY(received<HubAttempt>(mesh.island(3)).empty());
  wait(mesh, 2);
  QCOMPARE(last_order(mesh, 3), (std::vector<IslandId>{mesh.island(1).id, mesh.island(3).id}));
}

void CoordinatorAloneTest::of_two_the_one_that_is_never_ready_is_named() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  mesh.trains_by_itself = false;
  mesh.say(2, ready_for(0));

  wait(mesh, 470);
  QVERIFY(!mesh.hub().standstill().has_value());
  wait(mesh, 20);

  QVERIFY(mesh.hub().standstill().has_value());
  QCOMPARE(mesh.hub().standstill()->kind, Standstill::Kind::kStragglers);
  QVERIFY(mesh.hub().standstill()->text.find(mesh.island(1).id.value) != std::string::npos);
  QVERIFY(mesh.hub().standstill()->text.find("atoll hub remove") != std::string::npos);
  QVERIFY(received<HubAttempt>(mesh.island(2)).empty());
  mesh.remove(1);
  wait(mesh, 61);
  QVERIFY(!mesh.hub().standstill().has_value());
  QCOMPARE(last_order(mesh, 2), std::vector<IslandId>{mesh.island(2).id});
}

void CoordinatorAloneTest::a_quorum_takes_back_who_sat_out_for_an_edge() {
  RunConfig run = run_for(2);
  run.quorum = 2;
  SimulatedMesh mesh(run);
  begin_first_round(mesh, 2);
  mesh.trains_by_itself = false;
  all_ready(mesh, 2);
  for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
    QCOMPARE(last_attempt(mesh, 1), attempt);
    accuse(mesh, 1, 2, attempt);
  }

  wait(mesh, 40);

  QVERIFY(last_attempt(mesh, 1) > 3);
  QCOMPARE(last_order(mesh, 1).size(), std::size_t{2});
  for (int i = 1; i <= 2; ++i) have(mesh, i, last_attempt(mesh, 1));
  QCOMPARE(mesh.hub().committed(), OuterStep{1});
}

void CoordinatorAloneTest::who_accuses_everybody_sits_out_and_nobody_else() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  mesh.trains_by_itself = false;
  all_ready(mesh, 3);

  for (int i = 0; i < 3; ++i) accuse(mesh, 1, 2, last_attempt(mesh, 1));
  QCOMPARE(last_order(mesh, 1).size(), std::size_t{2});  // one word against another
  for (int i = 0; i < 3; ++i) accuse(mesh, 1, 3, last_attempt(mesh, 1));

  QCOMPARE(last_order(mesh, 3), (std::vector<IslandId>{mesh.island(2).id, mesh.island(3).id}));
  for (int i = 2; i <= 3; ++i) have(mesh, i, last_attempt(mesh, 3));
  QCOMPARE(mesh.hub().committed(), OuterStep{1});
}

void CoordinatorAloneTest::whoever_is_first_after_a_way_back_does_not_train_alone() {
  SimulatedMesh mesh(run_for(3));
  mesh.keeps_states = true;
  for (int i = 1; i <= 3; ++i) mesh.start(i);
  while (mesh.commits().size() < 4) mesh.settle_once();
  const OuterStep to{mesh.hub().committed().value - 2};

  mesh.roll_back(to);
  for (int i = 0; i < 40; ++i) {  // the others read their disks
    mesh.act(mesh.island(1));
    mesh.pass(1s);
  }

  QCOMPARE(mesh.island(1).outer_step, std::optional(to));
  QVERIFY(!mesh.hub().round_open());
  mesh.settle();
  QVERIFY(mesh.hub().committed() > to);
  QCOMPARE(mesh.commits().back().members.size(), std::size_t{3});
  QCOMPARE(mesh.violation(), std::string());
}

void CoordinatorAloneTest::who_comes_soon_trains_where_few_do() {
  SimulatedMesh mesh(run_for(1));
  begin_first_round(mesh, 1);
  for (int i = 2; i <= 4; ++i) mesh.start(i);

  deliver(mesh);

  int trainers = 0;
  for (int i = 1; i <= 4; ++i) {
    for (const HubRoundBegin& begun : received<HubRoundBegin>(mesh.island(i)))
      trainers += begun.inner_steps > 0 ? 1 : 0;
  }
  QCOMPARE(trainers, 2);  // half of those that are here
  mesh.pass(61s);
  mesh.start(5);
  deliver(mesh);
  QCOMPARE(received<HubRoundBegin>(mesh.island(5)).back().inner_steps, 0u);
}

void CoordinatorAloneTest::a_silent_trainer_does_not_keep_the_others_waiting_for_ever() {
  SimulatedMesh mesh(run_for(1));
  begin_first_round(mesh, 1);
  mesh.trains_by_itself = false;
  wait(mesh, 61);
  for (int i = 2; i <= 3; ++i) {
    mesh.start(i);
    deliver(mesh);
    mesh.say(i, IslandReady{OuterStep{0}, 0, 0, 0});
  }

  wait(mesh, 600);

  for (int i = 2; i <= 3; ++i) {
    QVERIFY(received<HubRoundBegin>(mesh.island(i)).back().inner_steps > 0);
    mesh.say(i, ready_for(0));
  }
  wait(mesh, 61);
  QCOMPARE(last_order(mesh, 2), (std::vector<IslandId>{mesh.island(2).id, mesh.island(3).id}));
}

void CoordinatorAloneTest::buckets_of_a_failed_attempt_prove_nothing() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  mesh.trains_by_itself = false;
  all_ready(mesh, 3);
  const std::vector<bool> all(SimulatedMesh::kBuckets, true);
  {  // the liar altered island 2's bytes before, and breaks off when all is whole
    const std::uint32_t attempt = last_attempt(mesh, 1);
    for (const int i : {3, 2, 1}) {
      mesh.say(i, IslandAttemptFailed{OuterStep{0}, Attempt{attempt}, std::nullopt, "broken off", all});
    }
    wait(mesh, 7);
    QCOMPARE(last_attempt(mesh, 1), attempt + 1);
    QCOMPARE(received<HubAttempt>(mesh.island(1)).back().final_buckets, all);
    for (int i = 1; i <= 3; ++i) have(mesh, i, attempt + 1, i == 2 ? std::string(64, 'e') : kDigest);
    show_no_chunks(mesh, 3, attempt + 1);
  }

  QCOMPARE(mesh.hub().committed(), OuterStep{1});  // what most hold
  QCOMPARE(mesh.count<WorkLeftOut>(), 0);
  QVERIFY(!mesh.island(2).goodbye.has_value());
}

void CoordinatorAloneTest::a_hub_restored_amid_a_round_waits_for_those_who_may_know_more() {
  SimulatedMesh mesh(run_for(1));
  mesh.keeps_states = true;
  mesh.start(2);
  deliver(mesh);
  QVERIFY(mesh.hub().round_open());
  mesh.back_up();  // one lease is open
  mesh.kill(2);
  for (const int i : {1, 3}) mesh.start(i);
  while (mesh.commits().size() < 3) {
    mesh.settle_once();
    mesh.pass(100ms);
  }
  const OuterStep known = mesh.hub().committed();
  for (const int i : {1, 3}) mesh.kill(i);

  mesh.restore();
  mesh.start(2);
  for (int i = 0; i < 40; ++i) {
    mesh.settle();
    mesh.pass(1s);
  }
  QCOMPARE(mesh.hub().committed(), OuterStep{0});
  for (const int i : {1, 3}) mesh.start(i);
  for (int i = 0; i < 70; ++i) {
    mesh.settle();
    mesh.pass(1s);
  }

  QVERIFY(mesh.hub().committed() > known);
  QCOMPARE(mesh.violation(), std::string());
}

void CoordinatorAloneTest::a_rollback_before_the_step_is_taken_leaves_everybody_whole() {
  SimulatedMesh mesh(run_for(3));
  mesh.keeps_states = true;
  for (int i = 1; i <= 3; ++i) mesh.start(i);
  while (mesh.commits().size() < 3) mesh.settle_once();
  const OuterStep before{mesh.hub().committed().value - 1};

  mesh.roll_back(before);  // its commit is on its way to them
  mesh.settle();

  for (int i = 1; i <= 3; ++i) QVERIFY(!mesh.island(i).goodbye.has_value());
  QVERIFY(mesh.hub().committed() > before);
  QCOMPARE(mesh.violation(), std::string());
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::CoordinatorAloneTest)
#include "coordinator_alone_test.moc"
