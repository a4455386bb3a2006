// An attempt that fails: the next one averages only what not all of its members hold already.
#include <QtTest>

#include "tests/net/mesh/coordinator_script.h"

namespace atl {
namespace {

using Buckets = std::vector<bool>;

void answer(SimulatedMesh& mesh, int island, std::uint32_t attempt, const Buckets& whole) {
  mesh.say(island, IslandAttemptFailed{OuterStep{0}, Attempt{attempt}, std::nullopt, "aborted", whole});
}

std::vector<HubAttempt> attempts_of(const SimulatedMesh::Island& island) {
  std::vector<HubAttempt> attempts = received<HubAttempt>(island);
  for (const HubMessage& message : island.inbox) {  // not delivered yet
    if (const auto* attempt = std::get_if<HubAttempt>(&message)) attempts.push_back(*attempt);
  }
  return attempts;
}

// Islands 1..n are in attempt 1 of round 0. What the hub says stays undelivered, so that a test answers for them.
void begin_attempt(SimulatedMesh& mesh, int islands) {
  begin_first_round(mesh, islands);
  for (int i = 1; i <= islands; ++i) mesh.say(i, ready_for(0));
}

}  // namespace

class CoordinatorBucketsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void what_all_survivors_hold_is_not_averaged_again();
  void who_reports_the_failure_says_at_once_what_it_holds();
  void who_holds_the_whole_average_keeps_what_the_others_hold();
  void nobody_waits_for_the_answer_of_one_that_died();
  void who_does_not_answer_costs_the_buckets_but_not_the_round();
  void a_member_that_was_not_in_the_attempt_costs_the_buckets();
  void a_member_that_came_back_costs_the_buckets();
  void differing_averages_keep_nothing();
  void answers_that_do_not_fit_keep_nothing();
  void who_only_says_that_it_holds_a_bucket_is_left_behind();
  void buckets_outlive_several_failures();
};

void CoordinatorBucketsTest::what_all_survivors_hold_is_not_averaged_again() {
  SimulatedMesh mesh(run_for(3));
  begin_attempt(mesh, 3);

  mesh.kill(2);
  QCOMPARE(attempts_of(mesh.island(1)).size(), std::size_t{1});
  answer(mesh, 1, 1, {true, true, false, false});
  answer(mesh, 3, 1, {true, false, true, false});

  const auto attempts = attempts_of(mesh.island(1));
  QCOMPARE(attempts.size(), std::size_t{2});
  QCOMPARE(attempts[1].order.size(), std::size_t{2});
  QCOMPARE(attempts[1].final_buckets, (Buckets{true, false, false, false}));
  have(mesh, 1, 2);
  have(mesh, 3, 2);
  QCOMPARE(mesh.hub().committed(), OuterStep{1});
}

void CoordinatorBucketsTest::who_reports_the_failure_says_at_once_what_it_holds() {
  SimulatedMesh mesh(run_for(2));
  begin_attempt(mesh, 2);

  mesh.say(1, IslandAttemptFailed{OuterStep{0}, Attempt{1}, mesh.island(2).id, "reset", {true, true, false}});
  answer(mesh, 1, 1, {false, false, false});  // of the abort that the hub sent to it too: says nothing new
  answer(mesh, 2, 1, {true, true, true});

  QCOMPARE(attempts_of(mesh.island(2)).at(1).final_buckets, (Buckets{true, true, false}));
}

void CoordinatorBucketsTest::who_holds_the_whole_average_keeps_what_the_others_hold() {
  SimulatedMesh mesh(run_for(3));
  begin_attempt(mesh, 3);
  have(mesh, 1, 1);

  mesh.kill(2);
  answer(mesh, 1, 1, {true, true});
  answer(mesh, 3, 1, {true, false});

  QCOMPARE(attempts_of(mesh.island(3)).at(1).final_buckets, (Buckets{true, false}));
}

void CoordinatorBucketsTest::nobody_waits_for_the_answer_of_one_that_died() {
  SimulatedMesh mesh(run_for(3));
  begin_attempt(mesh, 3);

  mesh.say(1, IslandAttemptFailed{OuterStep{0}, Attempt{1}, mesh.island(2).id, "reset", {true, false}});
  answer(mesh, 3, 1, {true, true});
  QCOMPARE(attempts_of(mesh.island(1)).size(), std::size_t{1});
  mesh.kill(2);

  const auto attempts = attempts_of(mesh.island(1));
  QCOMPARE(attempts.size(), std::size_t{2});
  QCOMPARE(attempts[1].order.size(), std::size_t{2});
  QCOMPARE(attempts[1].final_buckets, (Buckets{true, false}));
}

void CoordinatorBucketsTest::who_does_not_answer_costs_the_buckets_but_not_the_round() {
  SimulatedMesh mesh(run_for(2));
  begin_attempt(mesh, 2);

  mesh.say(1, IslandAttemptFailed{OuterStep{0}, Attempt{1}, mesh.island(2).id, "reset", {true, true}});
  mesh.pass(5900ms);
  QCOMPARE(attempts_of(mesh.island(1)).size(), std::size_t{1});
  mesh.pass(200ms);  // the dead-after time is over, and its heartbeats still come

  const auto attempts = attempts_of(mesh.island(1));
  QCOMPARE(attempts.size(), std::size_t{2});
  QCOMPARE(attempts[1].order.size(), std::size_t{2});
  QVERIFY(attempts[1].final_buckets.empty());
}

void CoordinatorBucketsTest::a_member_that_was_not_in_the_attempt_costs_the_buckets() {
  SimulatedMesh mesh(run_for(2));
  begin_attempt(mesh, 2);
  mesh.start(3);
  deliver(mesh);
  mesh.say(3, IslandReady{OuterStep{0}, 0, 0, 0});

  mesh.say(1, IslandAttemptFailed{OuterStep{0}, Attempt{1}, mesh.island(2).id, "reset", {true, true}});
  answer(mesh, 2, 1, {true, true});

  const auto attempts = attempts_of(mesh.island(1));
  QCOMPARE(attempts.back().order.size(), std::size_t{3});
  QVERIFY(attempts.back().final_buckets.empty());
}

void CoordinatorBucketsTest::a_member_that_came_back_costs_the_buckets() {
  SimulatedMesh mesh(run_for(3));
  begin_attempt(mesh, 3);

  mesh.say(1, IslandAttemptFailed{OuterStep{0}, Attempt{1}, mesh.island(2).id, "reset", {true, true}});
  answer(mesh, 2, 1, {true, true});
  mesh.cut(2);
  mesh.link(2);  // perhaps another process than the one that held them
  mesh.say(2, ready_for(0));
  answer(mesh, 3, 1, {true, true});

  const auto attempts = attempts_of(mesh.island(1));
  QCOMPARE(attempts.back().attempt, Attempt{2});
  QCOMPARE(attempts.back().order.size(), std::size_t{3});
  QVERIFY(attempts.back().final_buckets.empty());
}

void CoordinatorBucketsTest::differing_averages_keep_nothing() {
  SimulatedMesh mesh(run_for(2));
  begin_attempt(mesh, 2);

  have(mesh, 1, 1);
  have(mesh, 2, 1, std::string(64, 'e'));
  show_no_chunks(mesh, 2, 1);

  const auto attempts = attempts_of(mesh.island(1));
  QCOMPARE(attempts.size(), std::size_t{2});
  answer(mesh, 1, 1, {true});
  answer(mesh, 2, 1, {true});
  QVERIFY(attempts[1].final_buckets.empty());
}

void CoordinatorBucketsTest::answers_that_do_not_fit_keep_nothing() {
  SimulatedMesh mesh(run_for(2));
  begin_attempt(mesh, 2);

  mesh.say(1, IslandAttemptFailed{OuterStep{0}, Attempt{1}, mesh.island(2).id, "reset", {true, true}});
  answer(mesh, 2, 1, {true, true, true});

  QVERIFY(attempts_of(mesh.island(1)).at(1).final_buckets.empty());
}

void CoordinatorBucketsTest::who_only_says_that_it_holds_a_bucket_is_left_behind() {
  SimulatedMesh mesh(run_for(3));
  begin_attempt(mesh, 3);
  mesh.say(1, IslandAttemptFailed{OuterStep{0}, Attempt{1}, mesh.island(2).id, "reset", {true, false}});
  answer(mesh, 2, 1, {true, false});
  answer(mesh, 3, 1, {true, true});  // it does not
  QCOMPARE(attempts_of(mesh.island(1)).at(1).final_buckets, (Buckets{true, false}));

  have(mesh, 1, 2);
  have(mesh, 2, 2);
  have(mesh, 3, 2, std::string(64, 'e'));  // so its bytes are others
  show_no_chunks(mesh, 3, 2);

  deliver(mesh);
  QCOMPARE(mesh.hub().committed(), OuterStep{1});
  QCOMPARE(mesh.commits().at(0).digest, kDigest);  // what most hold
  QCOMPARE(mesh.commits().at(0).holders, (std::vector<IslandId>{mesh.island(1).id, mesh.island(2).id}));
}

void CoordinatorBucketsTest::buckets_outlive_several_failures() {
  SimulatedMesh mesh(run_for(4));
  begin_attempt(mesh, 4);

  mesh.kill(4);
  for (const int i : {1, 2, 3}) answer(mesh, i, 1, {true, false, false});
  mesh.kill(3);
  for (const int i : {1, 2}) answer(mesh, i, 2, {true, true, false});

  const auto attempts = attempts_of(mesh.island(1));
  QCOMPARE(attempts.size(), std::size_t{3});
  QCOMPARE(attempts[2].final_buckets, (Buckets{true, true, false}));
  have(mesh, 1, 3);
  have(mesh, 2, 3);
  QCOMPARE(mesh.hub().committed(), OuterStep{1});
  QCOMPARE(mesh.violation(), std::string());
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::CoordinatorBucketsTest)
#include "coordinator_buckets_test.moc"
