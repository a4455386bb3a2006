// By which schedule the hub has an attempt averaged, what becomes of a direct one that fails, and whom it blames.
#include <QtTest>
#include <algorithm>
#include <random>

#include "tests/net/mesh/schedule_script.h"

namespace atl {
namespace {

void fail(SimulatedMesh& mesh, int island, std::uint32_t attempt, int peer, bool silent = false,
          std::vector<bool> whole = {}) {
  mesh.say(island, IslandAttemptFailed{OuterStep{mesh.hub().committed()}, Attempt{attempt}, mesh.island(peer).id,
                                       "reset", std::move(whole), silent});
}
// So the organiser is told of the last round.
bool directly(SimulatedMesh& mesh) {
  bool told = false;
  for (const CoordinatorNews& news : mesh.news()) {
    if (const auto* committed = std::get_if<RoundCommitted>(&news)) told = committed->directly;
  }
  return told;
}

}  // namespace

class CoordinatorScheduleTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_attempt_over_long_links_goes_directly_and_one_over_unknown_ones_round_the_ring();
  void what_is_not_summed_hop_by_hop_goes_round_the_ring();
  void a_hub_that_does_not_know_the_model_and_two_islands_go_round_the_ring();
  void one_that_nobody_can_dial_is_the_first_to_dial_and_two_such_go_round_the_ring();
  void rounds_are_committed_by_it_whoever_comes_and_goes();
  void an_exchange_that_fails_goes_on_round_the_ring_with_what_is_whole();
  void a_pair_that_cannot_exchange_leaves_the_run_with_the_ring_for_a_while_and_longer_each_time();
  void an_exchange_whose_member_is_lost_or_leaves_goes_on_directly_without_it();
  void an_exchange_goes_on_directly_though_its_members_miss_one_before_the_hub_does();
  void an_exchange_whose_members_are_all_gone_is_begun_anew();
  void everybody_has_an_edge_with_everybody();
  void who_ended_a_stalled_exchange_is_believed_and_not_who_says_that_least_came();
  void an_owner_that_gives_each_another_sum_is_found_out_at_once();
  void one_that_holds_another_average_leaves_the_run_its_exchange();
  void an_exchange_that_leaves_a_member_behind_leaves_the_run_with_the_ring();
  void an_exchange_that_most_do_not_end_leaves_the_run_with_the_ring();
  void exchanges_of_two_fragments_that_fail_together_count_once();
  void whom_two_framed_once_is_not_blamed_for_what_one_of_them_does_later();
  void what_a_liar_says_of_its_links_is_of_its_own_alone();
};

void CoordinatorScheduleTest::an_attempt_over_long_links_goes_directly_and_one_over_unknown_ones_round_the_ring() {
  SimulatedMesh unknown(run_for(4), small_fragments(1)), known(run_for(4), small_fragments(1)),
      large(run_for(4), {1'000'000'000});
  begin_first_round(unknown, 4);
  all_ready(unknown, 4);
  begin_directly(known, 4);
  begin_directly(large, 4);

  QCOMPARE(schedules(unknown), (std::vector{kRing}));
  QCOMPARE(schedules(known), (std::vector{kDirect}));
  QCOMPARE(schedules(large), (std::vector{kRing}));
  for (int i = 2; i <= 4; ++i) QCOMPARE(attempts(known, i).back().schedule, kDirect);
}

void CoordinatorScheduleTest::what_is_not_summed_hop_by_hop_goes_round_the_ring() {
  RunConfig run = run_for(4);
  run.wire = WireFormat::kInt4E3m0;
  SimulatedMesh mesh(run, small_fragments(1));

  begin_directly(mesh, 4);

  QCOMPARE(schedules(mesh), (std::vector{kRing}));
}

void CoordinatorScheduleTest::a_hub_that_does_not_know_the_model_and_two_islands_go_round_the_ring() {
  SimulatedMesh unknown(run_for(4)), two(run_for(2), small_fragments(1));

  begin_directly(unknown, 4);
  begin_directly(two, 2);

  QCOMPARE(schedules(unknown), (std::vector{kRing}));
  QCOMPARE(schedules(two), (std::vector{kRing}));
}

void CoordinatorScheduleTest::one_that_nobody_can_dial_is_the_first_to_dial_and_two_such_go_round_the_ring() {
  for (const int hidden : {1, 2}) {
    SimulatedMesh mesh(run_for(4), small_fragments(1));
    begin_first_round(mesh, 4);
    for (int i = 1; i <= hidden; ++i) answer_dial(mesh, 4 - i, false);
    measure_long_links(mesh, 4);

    all_ready(mesh, 4);

    const HubAttempt attempt = attempts(mesh).back();
    QCOMPARE(attempt.schedule, hidden == 1 ? kDirect : kRing);
    if (hidden == 1) QCOMPARE(attempt.order.front().id, mesh.island(3).id);
    for (const AttemptMember& member : attempt.order) {  // for the ring that may follow
      QCOMPARE(member.dials_previous,
               member.id == mesh.island(3).id || (hidden == 2 && member.id == mesh.island(2).id));
    }
  }
}

void CoordinatorScheduleTest::rounds_are_committed_by_it_whoever_comes_and_goes() {
  SimulatedMesh mesh(run_for(3), small_fragments(1));
  mesh.keeps_states = true;
  for (int i = 1; i <= 4; ++i) mesh.start(i);
  mesh.settle();
  measure_long_links(mesh, 4);

  commit_rounds(mesh, 2);
  mesh.kill(4);
  commit_rounds(mesh, 2);
  mesh.start(4);
  measure_long_links(mesh, 4);
  std::mt19937 random(1);
  for (int i = 0; i < 20 && mesh.commits().back().members.size() < 4; ++i) {
    mesh.settle_randomly(random, 400);
    mesh.pass(1s);
  }

  QCOMPARE(schedules(mesh).back(), kDirect);
  QVERIFY(directly(mesh));
  QCOMPARE(mesh.commits().back().members.size(), std::size_t{4});
  QCOMPARE(mesh.violation(), std::string());
}

void CoordinatorScheduleTest::an_exchange_that_fails_goes_on_round_the_ring_with_what_is_whole() {
  SimulatedMesh mesh(run_for(4), small_fragments(1));
  begin_directly(mesh, 4);
  const std::vector<bool> whole{true, false, true, false};

  fail(mesh, 1, 1, 3, false, whole);
  for (int i = 2; i <= 4; ++i) answer(mesh, i, 1, whole);
  mesh.pass(1s);
  deliver(mesh);

  QCOMPARE(schedules(mesh), (std::vector{kDirect, kRing}));
  QCOMPARE(attempts(mesh).back().final_buckets, whole);
  std::string why;
  for (const CoordinatorNews& news : mesh.news()) {
    if (const auto* failed = std::get_if<AttemptFailed>(&news)) why = failed->reason;
  }
  QCOMPARE(why, std::string("isl-1: reset; it went directly, and goes on around the ring"));
  QCOMPARE(attempts(mesh).back().order.size(), std::size_t{4});
  for (int i = 1; i <= 4; ++i) have(mesh, i, 2);
  QCOMPARE(mesh.commits().size(), std::size_t{1});
  QVERIFY(!directly(mesh));
}

void CoordinatorScheduleTest::
    a_pair_that_cannot_exchange_leaves_the_run_with_the_ring_for_a_while_and_longer_each_time() {
  SimulatedMesh mesh(run_for(4), small_fragments(1));
  begin_directly(mesh, 4);
  const auto fails = [&] {
    const std::uint32_t attempt = attempts(mesh).back().attempt.value;
    fail(mesh, 1, attempt, 3);
    for (int i = 2; i <= 4; ++i) answer(mesh, i, attempt);
    mesh.pass(1s);
  };
  const auto goes_directly_after = [&](std::chrono::minutes minutes) {
    for (int i = 0; i < minutes / 5s; ++i) mesh.pass(5s);
    measure_long_links(mesh, 4);
    commit_rounds(mesh, 2);
    return schedules(mesh).back() == kDirect;
  };
  QCOMPARE(schedules(mesh).back(), kDirect);

  fails();

  QVERIFY(!goes_directly_after(0min));
  QVERIFY(!goes_directly_after(9min));
  QVERIFY(goes_directly_after(1min));  // and goes well
  const auto fail_the_next = [&] {
    for (int i = 0; i < 50 && mesh.hub().phase() != RoundCoordinator::Phase::kSyncing; ++i) {
      mesh.settle_once();
      mesh.pass(10ms);
    }
    QCOMPARE(mesh.hub().phase(), RoundCoordinator::Phase::kSyncing);
    deliver(mesh);
    QCOMPARE(schedules(mesh).back(), kDirect);
    fails();
  };
  mesh.trains_by_itself = true;
  fail_the_next();
  QVERIFY(!goes_directly_after(0min));
  QVERIFY(goes_directly_after(11min));
}

void CoordinatorScheduleTest::an_exchange_whose_member_is_lost_or_leaves_goes_on_directly_without_it() {
  for (const bool leaves : {false, true}) {
    SimulatedMesh mesh(run_for(4), small_fragments(1));
    begin_directly(mesh, 4);

    if (leaves) {
      mesh.say(4, IslandLeaving{"its owner wishes so"});
    } else {
      mesh.kill(4);
    }
    for (int i = 1; i <= 3; ++i) answer(mesh, i, 1);
    for (int i = 0; i < 2; ++i) mesh.pass(4s);
    deliver(mesh);

    QCOMPARE(schedules(mesh), (std::vector{kDirect, kDirect}));
    QCOMPARE(attempts(mesh).back().order.size(), std::size_t{3});
  }
}

void CoordinatorScheduleTest::an_exchange_goes_on_directly_though_its_members_miss_one_before_the_hub_does() {
  SimulatedMesh mesh(run_for(4), small_fragments(1));
  begin_directly(mesh, 4);

  fail(mesh, 1, 1, 4, /*silent=*/true);
  for (int i = 2; i <= 3; ++i) answer(mesh, i, 1);
  mesh.pass(1s);
  QCOMPARE(schedules(mesh), (std::vector{kDirect}));  // it waits for what island 4 says
  mesh.kill(4);
  for (int i = 0; i < 2; ++i) mesh.pass(4s);
  deliver(mesh);

  QCOMPARE(schedules(mesh), (std::vector{kDirect, kDirect}));
  QCOMPARE(attempts(mesh).back().order.size(), std::size_t{3});
}

void CoordinatorScheduleTest::an_exchange_whose_members_are_all_gone_is_begun_anew() {
  SimulatedMesh mesh(run_for(3), small_fragments(1));
  mesh.keeps_states = true;
  begin_directly(mesh, 3);
  QCOMPARE(schedules(mesh), (std::vector{kDirect}));

  for (int i = 1; i <= 3; ++i) mesh.kill(i);
  mesh.pass(10s);
  for (int i = 1; i <= 3; ++i) mesh.start(i);
  commit_rounds(mesh, 2);

  QCOMPARE(mesh.commits().back().members.size(), std::size_t{3});
  QCOMPARE(mesh.violation(), std::string());
}

// Members 1 and 3 are no neighbours in the ring: there the same word accuses who says it, three times in vain.
void CoordinatorScheduleTest::everybody_has_an_edge_with_everybody() {
  SimulatedMesh mesh(run_for(5), small_fragments(1));
  begin_directly(mesh, 5);
  const auto order = order_of(attempts(mesh).back());
  const auto at = [&](std::size_t rank) { return std::stoi(order[rank].value.substr(4)); };

  fail(mesh, at(0), 1, at(2), /*silent=*/true);
  fail(mesh, at(2), 1, at(0), /*silent=*/true);
  for (const std::size_t rank : {1, 3, 4}) answer(mesh, at(rank), 1);
  mesh.pass(1s);
  deliver(mesh);

  // Both ends found the edge silent: it is dead, and nobody sits out for it.
  QCOMPARE(schedules(mesh), (std::vector{kDirect, kRing}));
  QCOMPARE(attempts(mesh).back().order.size(), std::size_t{5});
  const auto next = order_of(attempts(mesh).back());
  const auto place = [&](std::size_t rank) { return std::ranges::find(next, order[rank]) - next.begin(); };
  const auto distance = std::abs(place(0) - place(2));
  QVERIFY(distance != 1 && distance != 4);
}

void CoordinatorScheduleTest::who_ended_a_stalled_exchange_is_believed_and_not_who_says_that_least_came() {
  FailureReports reports;
  IslandAttemptFailed first{OuterStep{0}, Attempt{1}, IslandId{"c"}, "no data"}, liar = first;
  first.stalled_after = 1'000'000;
  liar.stalled_after = 0;
  liar.peer = IslandId{"a"};
  reports.add(IslandId{"a"}, first);
  reports.add(IslandId{"c"}, liar);

  QCOMPARE(reports.blamed(kDirect).first, IslandId{"a"});
  QCOMPARE(reports.blamed(kRing).first, IslandId{"c"});
}

void CoordinatorScheduleTest::an_owner_that_gives_each_another_sum_is_found_out_at_once() {
  std::vector<AttemptMember> order;
  for (const char* name : {"a", "b", "c", "d"}) order.push_back({IslandId{name}, Address{}, 64});
  DigestInquiry inquiry(Attempt{1}, order, {IslandId{"a"}, IslandId{"b"}, IslandId{"c"}, IslandId{"d"}}, kDirect);
  const std::string good(64, 'a'), bad(64, 'b'), worse(64, 'c');

  // Rank 1, b, owns chunk 2: it gave c and d other bytes than it holds.
  inquiry.answer(IslandId{"a"}, {good, good, good, good});
  inquiry.answer(IslandId{"b"}, {good, good, good, good});
  inquiry.answer(IslandId{"c"}, {good, good, bad, good});
  inquiry.answer(IslandId{"d"}, {good, good, worse, good});

  QCOMPARE(inquiry.bad_edges(), (std::set<IslandPair>{{IslandId{"b"}, IslandId{"c"}}, {IslandId{"b"}, IslandId{"d"}}}));
  BadEdges edges;
  edges.add(inquiry.bad_edges());
  QCOMPARE(edges.culprit(), std::optional(IslandId{"b"}));
}

void CoordinatorScheduleTest::one_that_holds_another_average_leaves_the_run_its_exchange() {
  SimulatedMesh mesh(run_for(4), small_fragments(1));
  begin_directly(mesh, 4);

  for (int i = 1; i <= 4; ++i) have(mesh, i, 1, std::string(64, i == 4 ? 'e' : 'd'));
  show_no_chunks(mesh, 4, 1);
  deliver(mesh);
  QCOMPARE(mesh.hub().committed(), OuterStep{1});
  measure_long_links(mesh, 4);
  commit_rounds(mesh, 2);

  QCOMPARE(schedules(mesh).back(), kDirect);
}

// Else it would be left behind round after round, where the ring has room for it.
void CoordinatorScheduleTest::an_exchange_that_leaves_a_member_behind_leaves_the_run_with_the_ring() {
  SimulatedMesh mesh(run_for(4), small_fragments(1));
  begin_directly(mesh, 4);

  for (int i = 1; i <= 3; ++i) have(mesh, i, 1);
  for (int i = 0; i < 13; ++i) mesh.pass(5s);
  QCOMPARE(mesh.commits().size(), std::size_t{1});
  QVERIFY(directly(mesh));
  commit_rounds(mesh, 2);

  QVERIFY(schedules(mesh).size() > 2);
  QCOMPARE(schedules(mesh).back(), kRing);
}

void CoordinatorScheduleTest::an_exchange_that_most_do_not_end_leaves_the_run_with_the_ring() {
  SimulatedMesh mesh(run_for(4), small_fragments(1));
  begin_directly(mesh, 4);

  have(mesh, 1, 1);
  for (int i = 0; i < 12; ++i) mesh.pass(5s);
  for (int i = 1; i <= 4; ++i) answer(mesh, i, 1);
  mesh.pass(1s);
  deliver(mesh);
  QCOMPARE(schedules(mesh), (std::vector{kDirect, kRing}));
  for (int i = 1; i <= 4; ++i) have(mesh, i, 2);
  commit_rounds(mesh, 2);

  QVERIFY(schedules(mesh).size() > 2);
  QCOMPARE(schedules(mesh).back(), kRing);
}

void CoordinatorScheduleTest::exchanges_of_two_fragments_that_fail_together_count_once() {
  RunConfig run = run_of(2, 4);
  SimulatedMesh mesh(run, small_fragments(2));
  begin_first_round(mesh, 4);
  measure_long_links(mesh, 4);
  for (const std::uint32_t round : {0u, 1u}) all_say_ready(mesh, 4, round);
  QCOMPARE(schedules(mesh), (std::vector{kDirect, kDirect}));

  for (const std::uint32_t round : {0u, 1u}) {
    for (int i = 1; i <= 4; ++i) {
      IslandAttemptFailed failed{OuterStep{round}, Attempt{1}, std::nullopt, "reset"};
      failed.fragment = fragment_of(mesh, round);
      if (i == 1) failed.peer = mesh.island(3).id;
      mesh.say(i, failed);
    }
  }
  mesh.pass(1s);
  mesh.trains_by_itself = true;
  for (int i = 0; i < 11 * 12; ++i) mesh.pass(5s);
  measure_long_links(mesh, 4);
  commit_rounds(mesh, 4);

  QCOMPARE(schedules(mesh).back(), kDirect);  // after eleven minutes, not twenty
}

void CoordinatorScheduleTest::whom_two_framed_once_is_not_blamed_for_what_one_of_them_does_later() {
  SimulatedMesh mesh(run_for(5), small_fragments(1));
  begin_directly(mesh, 5);
  const auto order = order_of(attempts(mesh).back());
  const auto framed = static_cast<std::size_t>(std::ranges::find(order, mesh.island(1).id) - order.begin());
  const std::string honest(64, 'a');
  const auto show = [&](int island, std::uint32_t attempt, const std::string& of_the_framed) {
    std::vector<std::string> digests(5, honest);
    digests[(framed + 1) % 5] = of_the_framed;
    mesh.say(island, IslandChunks{mesh.hub().committed(), Attempt{attempt}, std::move(digests)});
  };
  const auto digest_of = [](int island) { return island < 4 ? kDigest : std::string(64, island == 4 ? 'e' : 'f'); };
  // Islands 4 and 5 say that 1 sent each of them other bytes.
  for (int i = 1; i <= 5; ++i) have(mesh, i, 1, digest_of(i));
  for (int i = 1; i <= 5; ++i) show(i, 1, i < 4 ? honest : digest_of(i));
  mesh.pass(1s);
  deliver(mesh);
  QCOMPARE(mesh.commits().size(), std::size_t{1});  // what most hold
  mesh.pass(1s);
  deliver(mesh);
  all_ready(mesh, 5);
  QCOMPARE(attempts(mesh).back().round, OuterStep{1});
  const std::uint32_t attempt = attempts(mesh).back().attempt.value;

  for (int i = 1; i <= 5; ++i) have(mesh, i, attempt, i == 4 ? std::string(64, 'e') : kDigest);
  for (int i = 1; i <= 5; ++i) show(i, attempt, honest);
  deliver(mesh);

  QCOMPARE(mesh.commits().size(), std::size_t{2});
  for (const CoordinatorNews& news : mesh.news()) {
    const auto* left_out = std::get_if<WorkLeftOut>(&news);
    QVERIFY(left_out == nullptr || left_out->round == OuterStep{0} || left_out->island == mesh.island(4).id);
  }
}

void CoordinatorScheduleTest::what_a_liar_says_of_its_links_is_of_its_own_alone() {
  SimulatedMesh mesh(run_for(4), {100'000'000});
  begin_first_round(mesh, 4);
  measure_links(
      mesh, 4, [](int, int) { return 12.5e6; }, 0.02);
  IslandLinkReport far;
  for (int peer = 1; peer <= 3; ++peer) {
    for (const bool outgoing : {true, false}) far.links.push_back({mesh.island(peer).id, outgoing, 1e12, 1e-6, false});
  }
  mesh.say(4, far);

  all_ready(mesh, 4);

  QCOMPARE(schedules(mesh), (std::vector{kRing}));  // the others' links are as they were
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::CoordinatorScheduleTest)
#include "coordinator_schedule_test.moc"
