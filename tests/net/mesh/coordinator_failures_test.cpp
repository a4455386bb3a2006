// Islands that die, fail or differ: the others commit the same round.
#include <QtTest>

#include "tests/net/mesh/coordinator_script.h"

namespace atl {

class CoordinatorFailuresTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void losses_of_which_there_is_no_mean_are_refused();
  void a_member_that_dies_while_training_does_not_stop_the_round();
  void a_member_that_dies_in_an_attempt_is_dropped_from_the_next_at_once();
  void when_all_that_remain_have_the_average_of_a_lost_member_it_is_committed();
  void one_word_leaves_nobody_behind();
  void who_is_left_of_many_commits_nothing_alone();
  void who_comes_and_goes_all_the_time_sits_the_round_out();
  void of_two_one_that_hangs_sits_the_round_out();
  void a_quorum_takes_back_who_was_lost_too_often();
  void a_member_that_never_gets_its_average_is_left_behind();
  void the_lease_of_a_dead_island_is_given_out_again_first();
  void a_silent_island_is_dead();
  void whom_a_peer_and_the_hub_miss_nobody_waits_for_data();
  void whom_a_peer_and_the_hub_miss_nobody_waits_for();
  void whom_the_hub_hears_no_word_of_others_leaves_out();
  void who_was_only_missed_comes_back_to_its_place();
  void a_reported_failure_aborts_and_is_retried_once_at_once_then_with_growing_delay();
  void an_edge_that_fails_three_times_costs_its_poorer_end_the_round();
  void of_the_reports_of_a_stall_the_one_that_got_least_is_believed();
  void a_lone_island_that_cannot_average_is_sent_away();
  void whom_most_outvote_are_left_behind_at_once_data();
  void whom_most_outvote_are_left_behind_at_once();
  void when_all_trainers_are_gone_the_receivers_train_the_round();
};

// Each is finite, and their mean is no number: which a commit cannot be kept with.
void CoordinatorFailuresTest::losses_of_which_there_is_no_mean_are_refused() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  mesh.say(1, IslandReady{OuterStep{0}, 64, 0.5, 1.7e308});
  mesh.say(2, IslandReady{OuterStep{0}, 64, 0.5, -1.7e308});
  mesh.say(3, ready_for(0));
  deliver(mesh);

  const auto attempts = received<HubAttempt>(mesh.island(3));
  for (const HubAttempt& attempt : attempts) QCOMPARE(attempt.order.size(), std::size_t{1});
  mesh.say(3, IslandValidation{OuterStep{0}, -1.0});
  QCOMPARE(mesh.count<IslandValidated>(), 0);
}

void CoordinatorFailuresTest::a_member_that_dies_while_training_does_not_stop_the_round() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  mesh.kill(2);
  mesh.say(1, ready_for(0));
  mesh.say(3, ready_for(0));
  deliver(mesh);
  QVERIFY(received<HubAttempt>(mesh.island(1)).empty());  // it may be back in a moment

  mesh.pass(2s);
  deliver(mesh);

  QCOMPARE(received<HubAttempt>(mesh.island(1)).at(0).order.size(), std::size_t{2});
}

void CoordinatorFailuresTest::a_member_that_dies_in_an_attempt_is_dropped_from_the_next_at_once() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  all_ready(mesh, 3);
  have(mesh, 1, 1);

  mesh.kill(2);
  deliver(mesh);

  QCOMPARE(received<HubAbort>(mesh.island(1)).size(), std::size_t{1});
  const auto attempts = received<HubAttempt>(mesh.island(1));
  QCOMPARE(attempts.size(), std::size_t{2});
  QCOMPARE(attempts[1].attempt, Attempt{2});
  QCOMPARE(attempts[1].order.size(), std::size_t{2});
  have(mesh, 1, 1);  // of the attempt that is over: no use
  have(mesh, 1, 2);
  have(mesh, 3, 2);
  QCOMPARE(mesh.hub().committed(), OuterStep{1});
  QCOMPARE(mesh.violation(), std::string());
}

void CoordinatorFailuresTest::when_all_that_remain_have_the_average_of_a_lost_member_it_is_committed() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  all_ready(mesh, 3);
  have(mesh, 1, 1);
  have(mesh, 3, 1);

  mesh.kill(2);

  QCOMPARE(mesh.hub().committed(), OuterStep{1});
  QCOMPARE(mesh.commits().at(0).members.size(), std::size_t{3});  // its work is in the average
  QCOMPARE(mesh.committed_leases().size(), std::size_t{3});
}

// Else who says first that it has an average, of its own making, commits it alone.
void CoordinatorFailuresTest::one_word_leaves_nobody_behind() {
  SimulatedMesh mesh(run_for(4));
  begin_first_round(mesh, 4);
  all_ready(mesh, 4);
  have(mesh, 4, 1, std::string(64, 'e'));

  for (int i = 0; i < 90; ++i) mesh.pass(1s);
  deliver(mesh);

  QCOMPARE(mesh.hub().committed(), OuterStep{0});
  QVERIFY(received<HubRecover>(mesh.island(1)).empty());
}

void CoordinatorFailuresTest::who_is_left_of_many_commits_nothing_alone() {
  SimulatedMesh mesh(run_for(4));
  begin_first_round(mesh, 4);
  all_ready(mesh, 4);
  have(mesh, 4, 1, std::string(64, 'e'));

  for (int i = 1; i <= 3; ++i) mesh.cut(i);  // for a moment, all at once

  QCOMPARE(mesh.hub().committed(), OuterStep{0});
}

void CoordinatorFailuresTest::who_comes_and_goes_all_the_time_sits_the_round_out() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  all_ready(mesh, 3);

  for (int i = 0; i < 3; ++i) {
    QCOMPARE(received<HubAttempt>(mesh.island(1)).back().order.size(), std::size_t{3});
    mesh.cut(3);
    mesh.link(3);
    mesh.say(3, ready_for(0));
    deliver(mesh);  // the others' answers to the abort
    mesh.pass(1s);
    deliver(mesh);
  }

  QCOMPARE(received<HubAttempt>(mesh.island(1)).back().order.size(), std::size_t{2});
}

void CoordinatorFailuresTest::of_two_one_that_hangs_sits_the_round_out() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  all_ready(mesh, 2);
  mesh.trains_by_itself = false;
  have(mesh, 1, 1);
  for (int i = 0; i < 59; ++i) mesh.pass(1s);
  QCOMPARE(mesh.count<AttemptFailed>(), 0);

  for (int i = 0; i < 10; ++i) {  // 2 says that it lives, and nothing else
    mesh.pass(1s);
    while (mesh.act(mesh.island(1))) continue;
  }

  const HubAttempt last = received<HubAttempt>(mesh.island(1)).back();
  QCOMPARE(last.order.size(), std::size_t{1});
  have(mesh, 1, last.attempt.value);
  QCOMPARE(mesh.hub().committed(), OuterStep{1});
}

void CoordinatorFailuresTest::a_quorum_takes_back_who_was_lost_too_often() {
  RunConfig run = run_for(2);
  run.quorum = 2;
  SimulatedMesh mesh(run);
  begin_first_round(mesh, 2);
  all_ready(mesh, 2);

  for (int i = 0; i < 4; ++i) {
    QCOMPARE(received<HubAttempt>(mesh.island(1)).back().order.size(), std::size_t{2});
    QCOMPARE(received<HubAttempt>(mesh.island(1)).back().attempt.value, static_cast<std::uint32_t>(i + 1));
    mesh.cut(2);
    mesh.link(2);
    mesh.say(2, ready_for(0));
    deliver(mesh);
    mesh.pass(1s);
    deliver(mesh);
  }
}

void CoordinatorFailuresTest::a_member_that_never_gets_its_average_is_left_behind() {
  SimulatedMesh mesh(run_for(4));
  begin_first_round(mesh, 4);
  all_ready(mesh, 4);
  have(mesh, 1, 1);
  have(mesh, 3, 1);
  have(mesh, 4, 1);
  for (int i = 0; i < 59; ++i) mesh.pass(1s);
  QCOMPARE(mesh.hub().committed(), OuterStep{0});

  mesh.pass(2s);
  deliver(mesh);

  QCOMPARE(mesh.hub().committed(), OuterStep{1});
  QVERIFY(received<HubCommit>(mesh.island(2)).empty());
  QCOMPARE(received<HubRecover>(mesh.island(2)).size(), std::size_t{1});
  QCOMPARE(mesh.violation(), std::string());
}

void CoordinatorFailuresTest::the_lease_of_a_dead_island_is_given_out_again_first() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  const auto lost = received<HubRoundBegin>(mesh.island(2)).at(0).lease_first_sequence;
  mesh.kill(2);
  mesh.pass(7s);
  all_ready(mesh, 1);

  have(mesh, 1, 1);
  deliver(mesh);

  QCOMPARE(received<HubRoundBegin>(mesh.island(1)).back().lease_first_sequence, lost);
}

void CoordinatorFailuresTest::a_silent_island_is_dead() {
  SimulatedMesh mesh(run_for(1));
  begin_first_round(mesh, 1);

  const auto actions = mesh.hub().next(Tick{}, Clock::time_point(1h) + 7s);

  QVERIFY(mesh.hub().islands().empty());
  QVERIFY(std::ranges::any_of(actions, [](const auto& a) { return std::holds_alternative<CloseConnection>(a); }));
}

namespace {

// It stops: its connection stands, and nothing comes by it any more.
void stop(SimulatedMesh& mesh, int island) { mesh.island(island).linked = false; }

IslandAttemptFailed missed(SimulatedMesh& mesh, std::uint32_t attempt, std::optional<int> peer) {
  const std::optional<IslandId> id = peer ? std::optional(mesh.island(*peer).id) : std::nullopt;
  return {OuterStep{0}, Attempt{attempt},           id, peer ? "sent nothing for 3.0 s" : "aborted",
          {},           /*silent=*/peer.has_value()};
}

}  // namespace

void CoordinatorFailuresTest::whom_a_peer_and_the_hub_miss_nobody_waits_for_data() {
  QTest::addColumn<bool>("directly");
  QTest::newRow("round the ring") << false;
  QTest::newRow("directly") << true;
}

// 3.3 s after it stopped a peer says so; the others have answered 0.1 s later.
void CoordinatorFailuresTest::whom_a_peer_and_the_hub_miss_nobody_waits_for() {
  QFETCH(bool, directly);
  SimulatedMesh mesh(run_for(4), small_fragments(1));
  begin_first_round(mesh, 4);
  if (directly) measure_long_links(mesh, 4);
  all_ready(mesh, 4);
  mesh.trains_by_itself = false;
  stop(mesh, 3);
  for (int i = 0; i < 33; ++i) mesh.pass(100ms);

  mesh.say(4, missed(mesh, 1, 3));
  mesh.say(2, missed(mesh, 1, {}));
  mesh.pass(100ms);
  QCOMPARE(mesh.count<AttemptFailed>(), 1);
  mesh.say(1, missed(mesh, 1, {}));
  deliver(mesh);

  const auto attempts = received<HubAttempt>(mesh.island(1));
  QCOMPARE(attempts.back().attempt, Attempt{2});
  QCOMPARE(attempts.back().order.size(), std::size_t{3});
  QCOMPARE(attempts.back().schedule, directly ? Schedule::kDirect : Schedule::kRing);
}

void CoordinatorFailuresTest::whom_the_hub_hears_no_word_of_others_leaves_out() {
  SimulatedMesh mesh(run_for(4));
  begin_first_round(mesh, 4);
  all_ready(mesh, 4);
  mesh.trains_by_itself = false;
  for (int i = 0; i < 33; ++i) mesh.pass(100ms);  // it says that it lives

  for (const int liar : {2, 4}) mesh.say(liar, missed(mesh, 1, 3));
  mesh.say(1, missed(mesh, 1, {}));
  for (int i = 0; i < 50; ++i) mesh.pass(100ms);

  QVERIFY(mesh.hub().islands().at(mesh.island(3).id).connected);
  QCOMPARE(mesh.count<AttemptFailed>(), 1);  // the next one waits for what it has to say
  mesh.say(3, missed(mesh, 1, {}));
  deliver(mesh);
  QCOMPARE(received<HubAttempt>(mesh.island(3)).back().order.size(), std::size_t{4});
}

void CoordinatorFailuresTest::who_was_only_missed_comes_back_to_its_place() {
  SimulatedMesh mesh(run_for(4));
  begin_first_round(mesh, 4);
  all_ready(mesh, 4);
  mesh.trains_by_itself = false;
  const auto lease = received<HubRoundBegin>(mesh.island(3)).back().lease_first_sequence;
  stop(mesh, 3);
  for (int i = 0; i < 33; ++i) mesh.pass(100ms);
  mesh.say(4, missed(mesh, 1, 3));

  mesh.link(3);  // before the others have answered
  mesh.say(3, ready_for(0));
  for (const int other : {1, 2}) mesh.say(other, missed(mesh, 1, {}));
  deliver(mesh);

  QCOMPARE(received<HubRoundBegin>(mesh.island(3)).back().lease_first_sequence, lease);
  QCOMPARE(received<HubAttempt>(mesh.island(3)).back().order.size(), std::size_t{4});
  QCOMPARE(mesh.count<IslandGone>(), 0);
}

void CoordinatorFailuresTest::a_reported_failure_aborts_and_is_retried_once_at_once_then_with_growing_delay() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  all_ready(mesh, 3);

  mesh.say(1, IslandAttemptFailed{OuterStep{0}, Attempt{1}, IslandId{"isl-2"}, "connection reset"});
  deliver(mesh);
  QCOMPARE(received<HubAttempt>(mesh.island(3)).size(), std::size_t{2});
  mesh.say(2, IslandAttemptFailed{OuterStep{0}, Attempt{1}, IslandId{"isl-1"}, "late"});  // of the one that is over
  mesh.say(3, IslandAttemptFailed{OuterStep{0}, Attempt{2}, IslandId{"isl-2"}, "connection reset"});
  deliver(mesh);
  QCOMPARE(received<HubAttempt>(mesh.island(3)).size(), std::size_t{2});
  mesh.pass(499ms);
  deliver(mesh);
  QCOMPARE(received<HubAttempt>(mesh.island(3)).size(), std::size_t{2});
  mesh.pass(2ms);
  deliver(mesh);

  QCOMPARE(received<HubAttempt>(mesh.island(3)).size(), std::size_t{3});
  QCOMPARE(received<HubAbort>(mesh.island(3)).size(), std::size_t{2});
}

void CoordinatorFailuresTest::an_edge_that_fails_three_times_costs_its_poorer_end_the_round() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  mesh.say(1, ready_for(0));
  mesh.say(2, IslandReady{OuterStep{0}, 32, 0.5, 2.0});
  mesh.say(3, ready_for(0));

  for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
    mesh.say(1, IslandAttemptFailed{OuterStep{0}, Attempt{attempt}, IslandId{"isl-2"}, "timeout"});
    mesh.pass(5s);
    deliver(mesh);
  }

  const auto last = received<HubAttempt>(mesh.island(3)).back();
  QCOMPARE(last.order.size(), std::size_t{2});
  QCOMPARE(last.order[0].id, IslandId{"isl-1"});
  QCOMPARE(last.order[1].id, IslandId{"isl-3"});
  have(mesh, 1, 4);
  have(mesh, 3, 4);
  deliver(mesh);
  QCOMPARE(received<HubRecover>(mesh.island(2)).size(), std::size_t{1});
}

// 3 passes nothing on: 1 follows it, 2 got what 1 had, and 3 itself the most.
void CoordinatorFailuresTest::of_the_reports_of_a_stall_the_one_that_got_least_is_believed() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  mesh.say(1, ready_for(0));
  mesh.say(2, ready_for(0));
  mesh.say(3, IslandReady{OuterStep{0}, 32, 0.5, 2.0});
  deliver(mesh);

  const auto stall = [&](std::uint32_t attempt, int peer, std::uint64_t bytes) {
    return IslandAttemptFailed{OuterStep{0}, Attempt{attempt}, mesh.island(peer).id, "no data", {}, false, bytes};
  };
  for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
    for (int i = 0; i < 13; ++i) mesh.pass(1s);  // a stall takes long to be found
    mesh.say(2, stall(attempt, 1, 2000));        // the first to lose patience is not the first to starve
    mesh.say(3, stall(attempt, 2, 3000));
    mesh.say(1, stall(attempt, 3, 1000));
    mesh.pass(5s);
    deliver(mesh);
  }

  const auto last = received<HubAttempt>(mesh.island(1)).back();
  QCOMPARE(last.order.size(), std::size_t{2});
  QCOMPARE(last.order[0].id, IslandId{"isl-1"});
  QCOMPARE(last.order[1].id, IslandId{"isl-2"});
}

void CoordinatorFailuresTest::a_lone_island_that_cannot_average_is_sent_away() {
  SimulatedMesh mesh(run_for(1));
  begin_first_round(mesh, 1);
  all_ready(mesh, 1);

  for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
    mesh.say(1, IslandAttemptFailed{OuterStep{0}, Attempt{attempt}, std::nullopt, "out of memory"});
    mesh.pass(5s);
    deliver(mesh);
  }

  QVERIFY(mesh.island(1).goodbye.has_value());
  QVERIFY(mesh.island(1).goodbye->message.find("out of memory") != std::string::npos);
}

void CoordinatorFailuresTest::whom_most_outvote_are_left_behind_at_once_data() {
  QTest::addColumn<int>("islands");
  QTest::addColumn<int>("outvoted");
  for (const auto& [islands, outvoted] : {std::pair(3, 1), {4, 1}, {8, 2}, {8, 3}, {14, 6}}) {
    QTest::addRow("%d of %d", outvoted, islands) << islands << outvoted;
  }
}

// Each of these holds a digest of its own, and shows nothing.
void CoordinatorFailuresTest::whom_most_outvote_are_left_behind_at_once() {
  QFETCH(int, islands);
  QFETCH(int, outvoted);
  SimulatedMesh mesh(run_for(static_cast<std::uint32_t>(islands)));
  begin_first_round(mesh, islands);
  all_ready(mesh, islands);

  for (int i = 1; i <= islands; ++i) {
    have(mesh, i, 1, i <= outvoted ? std::string(64, static_cast<char>('0' + i)) : kDigest);
  }
  show_no_chunks(mesh, islands, 1);
  deliver(mesh);

  QCOMPARE(mesh.hub().committed(), OuterStep{1});
  QCOMPARE(mesh.commits().at(0).digest, kDigest);
  QCOMPARE(mesh.commits().at(0).members.size(), static_cast<std::size_t>(islands));  // their work is in it
  QCOMPARE(mesh.count<AttemptFailed>(), 0);
  for (int i = 1; i <= islands; ++i) {
    QVERIFY(!mesh.island(i).goodbye.has_value());
    QCOMPARE(received<HubRecover>(mesh.island(i)).size(), std::size_t{i <= outvoted ? 1u : 0u});
  }
  QCOMPARE(QString::fromStdString(mesh.violation()), QString());
}

void CoordinatorFailuresTest::when_all_trainers_are_gone_the_receivers_train_the_round() {
  SimulatedMesh mesh(run_for(1));
  begin_first_round(mesh, 1);
  mesh.start(2);
  deliver(mesh);
  QCOMPARE(received<HubRoundBegin>(mesh.island(2)).at(0).inner_steps, 0u);
  mesh.say(2, IslandReady{OuterStep{0}, 0, 0, 0});

  mesh.kill(1);
  mesh.pass(7s);
  deliver(mesh);

  const auto begun = received<HubRoundBegin>(mesh.island(2));
  QCOMPARE(begun.size(), std::size_t{2});
  QCOMPARE(begun[1].round, OuterStep{0});
  QCOMPARE(begun[1].inner_steps, 4u);
  QCOMPARE(begun[1].lease_first_sequence, std::uint64_t{0});  // of the dead one
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::CoordinatorFailuresTest)
#include "coordinator_failures_test.moc"
