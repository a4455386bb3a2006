// With several fragments a round is trained while the one before is averaged: what that changes for who comes, and who
// is slow.
#include <QtTest>

#include "tests/net/mesh/fragment_script.h"

namespace atl {
namespace {

template <class Message>
concept NamesFragment = requires(Message message) {
  message.fragment;
};

template <class... Messages>
constexpr std::size_t count_fragment_messages(const std::variant<Messages...>&) {
  return (std::size_t{NamesFragment<Messages>} + ...);
}

}  // namespace

class CoordinatorFragmentsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void with_one_fragment_training_waits_for_the_average();
  void norms_are_compared_with_those_of_the_fragment();
  void the_next_round_is_begun_when_one_is_averaged_and_no_more_are_open_than_fragments();
  void rounds_are_committed_in_their_order_each_upon_a_state_that_is_known();
  void who_speaks_of_another_fragment_than_the_rounds_is_sent_away();
  void who_speaks_of_a_round_that_is_not_open_changes_nothing();
  void who_is_not_through_with_one_round_is_no_member_of_the_next();
  void who_holds_up_one_round_is_left_behind_in_both();
  void fewer_than_the_quorum_commit_none_of_the_open_rounds();
  void one_island_alone_goes_through_all_fragments();
  void the_last_rounds_are_open_together_and_none_is_begun_beyond();
  void who_comes_back_is_told_of_its_rounds_one_after_the_other();
  void a_straggler_trains_no_later_round_and_is_caught_up_with();
  void who_is_left_behind_for_ever_does_not_hold_up_the_others_for_ever();
  void a_run_ends_after_its_last_round();
};

void CoordinatorFragmentsTest::with_one_fragment_training_waits_for_the_average() {
  SimulatedMesh mesh(run_of(1, 3));
  begin_first_round(mesh, 3);

  all_say_ready(mesh, 3, 0);

  QCOMPARE(received<HubAttempt>(mesh.island(1)).size(), std::size_t{1});
  QCOMPARE(rounds_begun(mesh.island(1)), BegunRounds{0});
  all_have(mesh, 3, 0);
  QCOMPARE(rounds_begun(mesh.island(1)), (BegunRounds{0, 1}));
}

// Of two islands, one's past and the other's word bound a norm: a large fragment's past must not excuse a small one's.
void CoordinatorFragmentsTest::norms_are_compared_with_those_of_the_fragment() {
  SimulatedMesh mesh(run_of(2, 2));
  begin_first_round(mesh, 2);
  const auto say_norm = [&](int island, std::uint32_t round, double norm) {
    mesh.island(island).said_ready.insert(OuterStep{round});
    mesh.say(island, IslandReady{OuterStep{round}, 64, norm, 2.0, fragment_of(mesh, round)});
  };
  for (std::uint32_t round = 0; round < 8; ++round) {
    for (const int island : {1, 2}) say_norm(island, round, round % 2 == 0 ? 100 : 1);
    deliver(mesh);
    all_have(mesh, 2, round);
  }
  QCOMPARE(mesh.hub().committed(), OuterStep{8});
  QCOMPARE(mesh.count<WorkLeftOut>(), 0);
  for (const int island : {1, 2}) say_norm(island, 8, 100);
  deliver(mesh);

  say_norm(1, 9, 1);
  say_norm(2, 9, 60);
  all_have(mesh, 2, 8);
  deliver(mesh);

  QCOMPARE(mesh.count<WorkLeftOut>(), 1);
}

void CoordinatorFragmentsTest::the_next_round_is_begun_when_one_is_averaged_and_no_more_are_open_than_fragments() {
  for (const std::uint32_t fragments : {2u, 3u, 4u}) {
    SimulatedMesh mesh(run_of(fragments, 3));
    begin_first_round(mesh, 3);
    BegunRounds begun{0};
    for (std::uint32_t round = 0; round < fragments; ++round) {
      QCOMPARE(rounds_begun(mesh.island(2)), begun);
      all_say_ready(mesh, 3, round);
      if (round + 1 < fragments) begun.push_back(round + 1);
      QCOMPARE(received<HubAttempt>(mesh.island(2)).size(), std::size_t{round + 1});
    }
    QCOMPARE(rounds_begun(mesh.island(2)), begun);  // all are averaged: nothing is left to train

    all_have(mesh, 3, 0);

    begun.push_back(fragments);
    QCOMPARE(rounds_begun(mesh.island(2)), begun);
    QCOMPARE(received<HubRoundBegin>(mesh.island(2)).back().fragment, FragmentId{0});
    QVERIFY2(mesh.violation().empty(), mesh.violation().c_str());
  }
}

void CoordinatorFragmentsTest::rounds_are_committed_in_their_order_each_upon_a_state_that_is_known() {
  SimulatedMesh mesh(run_of(2, 3));
  average_two_rounds(mesh, 3);

  all_have(mesh, 3, 1);
  QCOMPARE(mesh.commits().size(), std::size_t{0});
  mesh.pass(1s);
  QCOMPARE(mesh.commits().size(), std::size_t{0});
  for (int i = 1; i <= 3; ++i) have(mesh, i, 1);  // of round 0; what they say of the state is still to come
  QCOMPARE(mesh.commits().size(), std::size_t{1});
  deliver(mesh);

  QCOMPARE(mesh.commits().size(), std::size_t{2});
  QCOMPARE(mesh.commits()[1].fragment, FragmentId{1});
  for (int i = 1; i <= 3; ++i) QCOMPARE(mesh.island(i).outer_step, std::optional(OuterStep{2}));
  QVERIFY2(mesh.violation().empty(), mesh.violation().c_str());
}

void CoordinatorFragmentsTest::who_speaks_of_another_fragment_than_the_rounds_is_sent_away() {
  struct Row {
    std::uint32_t fragments, round;
    FragmentId named;
  };
  for (const auto& [fragments, number, named] :
       {Row{1, 0, {1}}, Row{2, 0, {1}}, Row{2, 1, {0}}, Row{2, 1, {3}}, Row{3, 7, {2}}}) {
    const OuterStep round{number};  // open or not
    IslandAttemptFailed failed{round, Attempt{1}, std::nullopt, "reset"};
    failed.fragment = named;
    const std::vector<IslandMessage> messages{
        IslandReady{round, 64, 0.5, 2.0, named}, IslandHave{round, Attempt{1}, kDigest, 0.1, named},
        IslandChunks{round, Attempt{1}, {}, named}, IslandLeaseReturned{round, 0, "it is away", named}, failed};
    QCOMPARE(messages.size(), count_fragment_messages(IslandMessage()));
    for (const IslandMessage& message : messages) {
      SimulatedMesh mesh(run_of(fragments, 3));
      begin_first_round(mesh, 3);
      for (int i = 1; i <= 3; ++i) say_ready(mesh, i, 0);

      mesh.say(2, message);

      QVERIFY(mesh.island(2).goodbye.has_value());
      QCOMPARE(mesh.island(2).goodbye->code, ErrorCode::kProtocol);
      QVERIFY(!mesh.hub().islands().contains(mesh.island(2).id));
    }
  }
}

void CoordinatorFragmentsTest::who_speaks_of_a_round_that_is_not_open_changes_nothing() {
  SimulatedMesh mesh(run_of(2, 3));
  begin_first_round(mesh, 3);

  mesh.say(1, IslandReady{OuterStep{1}, 64, 0.5, 2.0, FragmentId{1}});
  mesh.say(1, IslandHave{OuterStep{1}, Attempt{1}, kDigest, 0.1, FragmentId{1}});
  mesh.say(1, IslandHave{OuterStep{4}, Attempt{1}, kDigest, 0.1, FragmentId{0}});
  QCOMPARE(mesh.hub().rounds().size(), std::size_t{1});
  all_say_ready(mesh, 3, 0);
  for (int i = 2; i <= 3; ++i) say_ready(mesh, i, 1);

  // Its early word does not count: it is waited for, and then for its average.
  QVERIFY(!mesh.hub().rounds().at(OuterStep{1})->runs_attempt());
  say_ready(mesh, 1, 1);
  QVERIFY(mesh.hub().rounds().at(OuterStep{1})->runs_attempt());
  all_have(mesh, 3, 0);
  for (int i = 2; i <= 3; ++i) mesh.say(i, IslandHave{OuterStep{1}, Attempt{1}, kDigest, 0.1, FragmentId{1}});
  QCOMPARE(mesh.commits().size(), std::size_t{1});
  QVERIFY2(mesh.violation().empty(), mesh.violation().c_str());
}

void CoordinatorFragmentsTest::who_is_not_through_with_one_round_is_no_member_of_the_next() {
  RunConfig run = run_of(2, 4);
  run.straggler_grace = 5s;
  SimulatedMesh mesh(run);
  begin_first_round(mesh, 4);
  all_say_ready(mesh, 4, 0);
  all_have(mesh, 4, 0);
  for (int i = 1; i <= 3; ++i) say_ready(mesh, i, 1);
  for (int i = 0; i < 6; ++i) mesh.pass(1s);
  deliver(mesh);
  QVERIFY(mesh.hub().rounds().contains(OuterStep{2}));

  // 4 says that it has trained what it was not given.
  mesh.say(4, IslandReady{OuterStep{2}, 64, 0.5, 2.0, FragmentId{0}});
  for (int i = 1; i <= 3; ++i) say_ready(mesh, i, 2);
  deliver(mesh);

  QCOMPARE(received<HubAttempt>(mesh.island(1)).back().round, OuterStep{2});
  QCOMPARE(received<HubAttempt>(mesh.island(1)).back().order.size(), std::size_t{3});
  QCOMPARE(received<HubAttempt>(mesh.island(4)).size(), std::size_t{1});  // of round 0
  QCOMPARE(rounds_begun(mesh.island(4)), (BegunRounds{0, 1}));
}

void CoordinatorFragmentsTest::who_holds_up_one_round_is_left_behind_in_both() {
  RunConfig run = run_of(2, 4);
  run.straggler_grace = 5s;
  SimulatedMesh mesh(run);
  average_two_rounds(mesh, 4);
  all_have(mesh, 4, 1);

  for (int i = 1; i <= 3; ++i) have(mesh, i, 1);  // 4 never says that it has the average of round 0
  QCOMPARE(mesh.commits().size(), std::size_t{0});
  for (int i = 0; i < 6; ++i) mesh.pass(1s);
  deliver(mesh);

  QCOMPARE(mesh.commits().size(), std::size_t{2});
  for (const HubCommit& commit : mesh.commits()) {
    QCOMPARE(commit.attempt, Attempt{1});
    QCOMPARE(commit.holders.size(), std::size_t{3});
  }
  QVERIFY(received<HubCommit>(mesh.island(4)).empty());
  QCOMPARE(received<HubRecover>(mesh.island(4)).back().outer_step, OuterStep{2});
}

void CoordinatorFragmentsTest::fewer_than_the_quorum_commit_none_of_the_open_rounds() {
  RunConfig run = run_of(2, 3);
  run.quorum = 2;
  run.lost_after = 20s;
  SimulatedMesh mesh(run);
  mesh.keeps_states = true;
  average_two_rounds(mesh, 3);

  for (int i = 2; i <= 3; ++i) mesh.kill(i);
  go_on(mesh, 40);
  QCOMPARE(mesh.commits().size(), std::size_t{0});
  QVERIFY(mesh.hub().standstill().has_value());
  QCOMPARE(mesh.hub().standstill()->kind, Standstill::Kind::kQuorum);
  QVERIFY(mesh.hub().rounds().size() <= 2);
  for (int i = 2; i <= 3; ++i) mesh.start(i);
  go_on(mesh, 10);

  QVERIFY(mesh.commits().size() >= 3);
  QVERIFY(!mesh.hub().standstill());
  QVERIFY2(mesh.violation().empty(), mesh.violation().c_str());
}

void CoordinatorFragmentsTest::one_island_alone_goes_through_all_fragments() {
  for (const std::uint32_t fragments : {2u, 3u, 4u}) {
    SimulatedMesh mesh(run_of(fragments, 1));
    mesh.start(1);

    go_on(mesh, 3);

    QVERIFY(mesh.commits().size() > 2 * fragments);
    QCOMPARE(mesh.most_open, std::size_t{fragments});
    QVERIFY2(mesh.violation().empty(), mesh.violation().c_str());
  }
}

void CoordinatorFragmentsTest::the_last_rounds_are_open_together_and_none_is_begun_beyond() {
  RunConfig run = run_of(3, 3);
  run.max_rounds = 2;
  SimulatedMesh mesh(run);
  average_two_rounds(mesh, 3);
  QCOMPARE(mesh.hub().rounds().size(), std::size_t{2});
  QCOMPARE(rounds_begun(mesh.island(1)), (BegunRounds{0, 1}));

  all_have(mesh, 3, 1);
  all_have(mesh, 3, 0);

  QCOMPARE(mesh.commits().size(), std::size_t{2});
  QCOMPARE(rounds_begun(mesh.island(1)), (BegunRounds{0, 1}));
  QCOMPARE(mesh.hub().phase(), RoundCoordinator::Phase::kFinished);
}

void CoordinatorFragmentsTest::who_comes_back_is_told_of_its_rounds_one_after_the_other() {
  SimulatedMesh mesh(run_of(2, 3));
  begin_first_round(mesh, 3);
  all_say_ready(mesh, 3, 0);
  const HubRoundBegin second = received<HubRoundBegin>(mesh.island(3)).back();

  mesh.cut(3);
  mesh.link(3);
  deliver(mesh);
  QCOMPARE(rounds_begun(mesh.island(3)), (BegunRounds{0, 1, 0}));
  say_ready(mesh, 3, 0);
  deliver(mesh);

  QCOMPARE(rounds_begun(mesh.island(3)), (BegunRounds{0, 1, 0, 1}));
  QCOMPARE(received<HubRoundBegin>(mesh.island(3)).back().lease_first_sequence, second.lease_first_sequence);
  QVERIFY2(mesh.violation().empty(), mesh.violation().c_str());
}

void CoordinatorFragmentsTest::a_straggler_trains_no_later_round_and_is_caught_up_with() {
  SimulatedMesh mesh(run_of(2, 4));
  begin_first_round(mesh, 4);
  all_say_ready(mesh, 4, 0);
  all_have(mesh, 4, 0);
  for (int i = 1; i <= 3; ++i) say_ready(mesh, i, 1);
  for (int i = 0; i < 61; ++i) mesh.pass(1s);
  deliver(mesh);

  QCOMPARE(rounds_begun(mesh.island(1)), (BegunRounds{0, 1, 2}));
  QCOMPARE(rounds_begun(mesh.island(4)), (BegunRounds{0, 1}));
  all_have(mesh, 3, 1);
  QCOMPARE(received<HubRecover>(mesh.island(4)).size(), std::size_t{1});

  // Round 3 is not begun while round 2 is averaged: where rounds overlap all the time it might never catch up.
  all_say_ready(mesh, 3, 2);
  QCOMPARE(received<HubAttempt>(mesh.island(1)).back().round, OuterStep{2});
  QCOMPARE(mesh.hub().rounds().size(), std::size_t{1});
  go_on(mesh, 5);

  QVERIFY(mesh.commits().size() > 5);
  QCOMPARE(mesh.commits().back().members.size(), std::size_t{4});
  QCOMPARE(mesh.hub().rounds().size(), std::size_t{2});
  QVERIFY2(mesh.violation().empty(), mesh.violation().c_str());
}

void CoordinatorFragmentsTest::who_is_left_behind_for_ever_does_not_hold_up_the_others_for_ever() {
  SimulatedMesh mesh(run_of(2, 3));
  for (int i = 1; i <= 4; ++i) mesh.start(i);
  mesh.trains_by_itself = false;
  deliver(mesh);
  // 4 never gets the state: it is told to, and says nothing.
  mesh.say(4, IslandReady{OuterStep{0}, 64, std::nan(""), 2.0});
  for (int i = 1; i <= 3; ++i) say_ready(mesh, i, 0);
  mesh.pass(0s);
  QCOMPARE(mesh.hub().rounds().size(), std::size_t{1});  // it might still come along

  for (int i = 0; i < 601; ++i) mesh.pass(1s);

  QCOMPARE(mesh.hub().rounds().size(), std::size_t{2});
}

void CoordinatorFragmentsTest::a_run_ends_after_its_last_round() {
  RunConfig run = run_of(3, 2);
  run.max_rounds = 5;
  run.validate_every = 2;
  SimulatedMesh mesh(run);
  for (int i = 1; i <= 2; ++i) mesh.start(i);

  go_on(mesh, 5);

  QCOMPARE(mesh.commits().size(), std::size_t{5});
  QCOMPARE(mesh.hub().phase(), RoundCoordinator::Phase::kFinished);
  for (int i = 1; i <= 2; ++i) QVERIFY(mesh.island(i).goodbye && mesh.island(i).goodbye->finished);
  QVERIFY2(mesh.violation().empty(), mesh.violation().c_str());
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::CoordinatorFragmentsTest)
#include "coordinator_fragments_test.moc"
