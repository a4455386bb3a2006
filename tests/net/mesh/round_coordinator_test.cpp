#include "net/mesh/round_coordinator.h"

#include <QtTest>

#include "tests/net/mesh/simulated_mesh.h"

namespace atl {
namespace {

using namespace std::chrono_literals;

RunConfig small_run() {
  RunConfig run;
  run.run_id = "0123456789abcdef";
  run.model_json = "{}";
  run.dataset_json = "{}";
  run.inner_steps = 4;
  run.sequences_per_step = 2;
  run.sequence_length = 8;
  run.min_islands = 1;
  run.validate_every = 0;
  run.heartbeat = 2s;
  run.dead_after = 6s;
  run.straggler_grace = 60s;
  return run;
}

RunConfig run_for(std::uint32_t islands) {
  RunConfig run = small_run();
  run.min_islands = islands;
  return run;
}

template <class Message>
std::vector<Message> received(const SimulatedMesh::Island& island) {
  std::vector<Message> found;
  for (const HubMessage& message : island.received) {
    if (const auto* match = std::get_if<Message>(&message)) found.push_back(*match);
  }
  return found;
}

// Lets the hub's messages in without any island training or averaging.
void deliver(SimulatedMesh& mesh) {
  const bool trains = std::exchange(mesh.trains_by_itself, false);
  mesh.settle();
  mesh.trains_by_itself = trains;
}

// Islands 1..n are in round 0, and have finished their inner phases if so asked, but the attempt is not answered yet.
void begin_first_round(SimulatedMesh& mesh, int islands) {
  for (int i = 1; i <= islands; ++i) mesh.start(i);
  deliver(mesh);
}
IslandReady ready_for(std::uint32_t round) { return IslandReady{OuterStep{round}, 64, 0.5, 2.0}; }
void all_ready(SimulatedMesh& mesh, int islands) {
  for (int i = 1; i <= islands; ++i) {
    mesh.island(i).inner_done = true;
    mesh.say(i, ready_for(mesh.hub().committed().value));
  }
  deliver(mesh);
}

const std::string kDigest(64, 'd');
void have(SimulatedMesh& mesh, int island, std::uint32_t attempt, const std::string& digest = kDigest) {
  mesh.island(island).average = {Attempt{attempt}, digest};
  mesh.say(island, IslandHave{mesh.hub().committed(), Attempt{attempt}, digest, 0.1});
}

}  // namespace

class RoundCoordinatorTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  // links
  void a_measured_ring_replaces_the_order_by_id();
  void a_dead_edge_of_four_is_avoided_and_nobody_sits_out();
  void two_islands_that_nobody_can_dial_are_not_neighbours_and_their_edges_say_who_dials();
  void islands_are_asked_to_probe_what_is_not_known_when_a_round_begins();
  // joining
  void the_first_round_waits_for_the_islands_that_the_run_asks_for();
  void all_islands_of_a_round_get_leases_that_do_not_overlap();
  void an_island_whose_initial_parameters_differ_is_refused();
  void an_island_of_another_version_is_refused();
  void an_island_ahead_of_the_hub_is_refused();
  void one_island_too_many_is_refused();
  void a_joiner_recovers_receives_one_round_and_trains_the_next();
  void an_attempt_waits_a_moment_for_a_receiver();
  void a_joiner_waits_until_somebody_holds_the_committed_state();
  // the round
  void an_attempt_opens_when_every_trainer_is_ready();
  void a_straggler_is_left_behind_when_the_grace_is_over_and_recovers();
  void a_commit_is_told_to_all_members_once_all_hold_the_same_digest();
  void three_rounds_are_committed_and_their_hashes_are_equal();
  void a_pseudo_gradient_that_is_not_finite_sends_its_island_to_recover();
  void more_tokens_than_leased_are_refused();
  // failures
  void a_member_that_dies_while_training_does_not_stop_the_round();
  void a_member_that_dies_in_an_attempt_is_dropped_from_the_next_at_once();
  void when_all_that_remain_have_the_average_of_a_lost_member_it_is_committed();
  void a_member_that_never_gets_its_average_is_left_behind();
  void the_lease_of_a_dead_island_is_given_out_again_first();
  void a_silent_island_is_dead();
  void a_reported_failure_aborts_and_is_retried_once_at_once_then_with_growing_delay();
  void an_edge_that_fails_three_times_costs_its_poorer_end_the_round();
  void a_lone_island_that_cannot_average_is_sent_away();
  void differing_digests_are_averaged_again_and_the_minority_is_sent_away();
  void when_all_trainers_are_gone_the_receivers_train_the_round();
  // coming back
  void an_island_that_reconnects_in_time_keeps_its_lease();
  void an_island_that_missed_the_commit_gets_it_when_it_comes_back();
  void one_that_does_not_hold_the_committed_average_recovers();
  void a_wrong_state_hash_sends_its_island_to_recover();
  void a_hub_that_restarts_goes_on_with_the_open_round();
  void a_hub_that_restarts_after_the_commit_tells_it_again();
  // the end
  void leaving_ends_membership_at_once();
  void after_the_last_round_one_island_validates_and_all_are_sent_home();
};

// ---- joining

// Says of every edge between islands 1..n how fast it is.
template <class Rate>
void measure_links(SimulatedMesh& mesh, int islands, Rate rate) {
  for (int from = 1; from <= islands; ++from) {
    IslandLinkReport report;
    for (int to = 1; to <= islands; ++to) {
      if (from != to) report.links.push_back({mesh.island(to).id, true, rate(from, to), 0.1, false});
    }
    mesh.say(from, report);
  }
}

std::vector<IslandId> order_of(const HubAttempt& attempt) {
  std::vector<IslandId> ids;
  for (const AttemptMember& member : attempt.order) ids.push_back(member.id);
  return ids;
}

void RoundCoordinatorTest::a_measured_ring_replaces_the_order_by_id() {
  SimulatedMesh mesh(run_for(4));
  begin_first_round(mesh, 4);
  const auto id = [&](int number) { return mesh.island(number).id; };

  measure_links(mesh, 4, [](int from, int to) {
    return (from * 10 + to == 13 || from * 10 + to == 32 || from * 10 + to == 24 || from * 10 + to == 41) ? 50e6 : 1e6;
  });
  all_ready(mesh, 4);

  const auto attempts = received<HubAttempt>(mesh.island(1));
  QCOMPARE(attempts.size(), std::size_t{1});
  QCOMPARE(order_of(attempts[0]), (std::vector<IslandId>{id(1), id(3), id(2), id(4)}));
}

void RoundCoordinatorTest::a_dead_edge_of_four_is_avoided_and_nobody_sits_out() {
  SimulatedMesh mesh(run_for(4));
  begin_first_round(mesh, 4);
  all_ready(mesh, 4);

  for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
    mesh.say(1, IslandAttemptFailed{OuterStep{0}, Attempt{attempt}, mesh.island(2).id, "timeout"});
    mesh.pass(5s);
    for (int i = 1; i <= 4; ++i) mesh.say(i, IslandHeartbeat{});
    deliver(mesh);
  }

  const auto attempts = received<HubAttempt>(mesh.island(4));
  const std::vector<IslandId> order = order_of(attempts.back());
  QCOMPARE(order.size(), std::size_t{4});
  const auto at = [&](int number) { return std::ranges::find(order, mesh.island(number).id) - order.begin(); };
  QCOMPARE(std::abs(at(1) - at(2)), std::ptrdiff_t{2});
}

void RoundCoordinatorTest::two_islands_that_nobody_can_dial_are_not_neighbours_and_their_edges_say_who_dials() {
  SimulatedMesh mesh(run_for(4));
  begin_first_round(mesh, 4);
  for (const int hidden : {1, 2}) mesh.hub_hears(IslandDialled{mesh.island(hidden).id, false});

  all_ready(mesh, 4);

  const HubAttempt attempt = received<HubAttempt>(mesh.island(1)).back();
  QCOMPARE(attempt.order.size(), std::size_t{4});
  for (std::size_t r = 0; r < 4; ++r) {
    const bool hidden = attempt.order[r].id == mesh.island(1).id || attempt.order[r].id == mesh.island(2).id;
    QCOMPARE(attempt.order[r].dials_previous, hidden);
    QVERIFY(!(hidden && attempt.order[(r + 1) % 4].dials_previous));
  }
}

void RoundCoordinatorTest::islands_are_asked_to_probe_what_is_not_known_when_a_round_begins() {
  SimulatedMesh mesh(run_for(4));

  begin_first_round(mesh, 4);

  std::size_t probes = 0;
  for (int i = 1; i <= 4; ++i) {
    for (const HubProbe& probe : received<HubProbe>(mesh.island(i))) {
      QVERIFY(probe.from != mesh.island(i).id);
      ++probes;
    }
  }
  QCOMPARE(probes, std::size_t{2});  // two pairs: nobody is busy twice
}

void RoundCoordinatorTest::the_first_round_waits_for_the_islands_that_the_run_asks_for() {
  SimulatedMesh mesh(run_for(2));
  mesh.start(1);
  deliver(mesh);
  QVERIFY(!mesh.hub().round_open());

  mesh.start(2);
  deliver(mesh);

  QVERIFY(mesh.hub().round_open());
  QCOMPARE(received<HubRoundBegin>(mesh.island(1)).size(), std::size_t{1});
  QCOMPARE(received<HubRoundBegin>(mesh.island(2)).size(), std::size_t{1});
}

void RoundCoordinatorTest::all_islands_of_a_round_get_leases_that_do_not_overlap() {
  SimulatedMesh mesh(run_for(3));

  begin_first_round(mesh, 3);

  std::set<std::uint64_t> firsts;
  for (int i = 1; i <= 3; ++i) {
    const HubRoundBegin begun = received<HubRoundBegin>(mesh.island(i)).at(0);
    QCOMPARE(begun.inner_steps, 4u);
    QCOMPARE(begun.lease_sequences, std::uint64_t{8});
    firsts.insert(begun.lease_first_sequence);
  }
  QCOMPARE(firsts, (std::set<std::uint64_t>{0, 8, 16}));
}

void RoundCoordinatorTest::an_island_whose_initial_parameters_differ_is_refused() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 1);
  mesh.trains_by_itself = false;
  mesh.start(2);

  mesh.say(2, IslandRecovered{OuterStep{0}, fake_sha256("other initial parameters")});

  QVERIFY(mesh.island(2).goodbye.has_value());
  QVERIFY(mesh.island(2).goodbye->message.find("same version of atoll") != std::string::npos);
  QCOMPARE(mesh.hub().islands().size(), std::size_t{1});
}

void RoundCoordinatorTest::an_island_of_another_version_is_refused() {
  SimulatedMesh mesh(run_for(1));
  IslandConnected event;
  event.entry.id = IslandId{"isl-1"};
  event.hello.version = 2;

  const auto actions = mesh.hub().next(event, Clock::time_point(1h));

  QCOMPARE(actions.size(), std::size_t{2});
  const auto* goodbye = std::get_if<HubGoodbye>(&std::get<SendTo>(actions[0]).message);
  QVERIFY(goodbye != nullptr && goodbye->code == ErrorCode::kVersionUnsupported);
  QVERIFY(std::holds_alternative<CloseConnection>(actions[1]));
}

void RoundCoordinatorTest::an_island_ahead_of_the_hub_is_refused() {
  SimulatedMesh mesh(run_for(1));
  mesh.island(1).running = true;
  mesh.island(1).outer_step = OuterStep{7};
  mesh.island(1).state_hash = fake_sha256("later");

  mesh.link(1);

  QVERIFY(mesh.island(1).goodbye.has_value());
  QVERIFY(mesh.island(1).goodbye->message.find("backup") != std::string::npos);
}

void RoundCoordinatorTest::one_island_too_many_is_refused() {
  RunConfig run = run_for(2);
  run.max_islands = 2;
  SimulatedMesh mesh(run);

  begin_first_round(mesh, 3);

  QCOMPARE(mesh.hub().islands().size(), std::size_t{2});
  QVERIFY(mesh.island(3).goodbye && mesh.island(3).goodbye->code == ErrorCode::kPermissionDenied);
}

void RoundCoordinatorTest::a_joiner_recovers_receives_one_round_and_trains_the_next() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  all_ready(mesh, 2);
  have(mesh, 1, 1);
  have(mesh, 2, 1);
  deliver(mesh);
  QCOMPARE(mesh.hub().committed(), OuterStep{1});

  mesh.start(3);
  deliver(mesh);
  const auto recover = received<HubRecover>(mesh.island(3));
  QCOMPARE(recover.size(), std::size_t{1});
  QCOMPARE(recover[0].outer_step, OuterStep{1});
  QCOMPARE(recover[0].sources, (std::vector{IslandId{"isl-1"}, IslandId{"isl-2"}}));
  mesh.act(mesh.island(3));  // fetches
  deliver(mesh);

  const auto begun = received<HubRoundBegin>(mesh.island(3));
  QCOMPARE(begun.size(), std::size_t{1});
  QCOMPARE(begun[0].inner_steps, 0u);
  mesh.say(3, IslandReady{OuterStep{1}, 0, 0, 0});
  all_ready(mesh, 2);
  const auto attempt = received<HubAttempt>(mesh.island(3));
  QCOMPARE(attempt.size(), std::size_t{1});
  QCOMPARE(attempt[0].order.size(), std::size_t{3});
  QCOMPARE(attempt[0].order[2].tokens, std::uint64_t{0});
  for (int i = 1; i <= 3; ++i) have(mesh, i, 1);
  deliver(mesh);
  QCOMPARE(received<HubRoundBegin>(mesh.island(3)).back().inner_steps, 4u);
  QCOMPARE(mesh.violation(), std::string());
}

void RoundCoordinatorTest::an_attempt_waits_a_moment_for_a_receiver() {
  SimulatedMesh mesh(run_for(1));
  begin_first_round(mesh, 1);
  mesh.start(2);
  deliver(mesh);
  QCOMPARE(received<HubRoundBegin>(mesh.island(2)).at(0).inner_steps, 0u);
  mesh.say(1, ready_for(0));
  deliver(mesh);
  QVERIFY(received<HubAttempt>(mesh.island(1)).empty());

  mesh.pass(2s);  // but no longer
  deliver(mesh);

  QCOMPARE(received<HubAttempt>(mesh.island(1)).at(0).order.size(), std::size_t{1});
}

void RoundCoordinatorTest::a_joiner_waits_until_somebody_holds_the_committed_state() {
  SimulatedMesh mesh(run_for(1));
  begin_first_round(mesh, 1);
  all_ready(mesh, 1);
  mesh.trains_by_itself = false;
  mesh.start(2);
  have(mesh, 1, 1);  // committed, but nobody has taken the outer step yet
  mesh.island(2).received.clear();

  QVERIFY(mesh.act(mesh.island(2)) || true);
  QVERIFY(received<HubRecover>(mesh.island(2)).empty());
  deliver(mesh);

  QCOMPARE(received<HubRecover>(mesh.island(2)).size(), std::size_t{1});
}

// ---- the round

void RoundCoordinatorTest::an_attempt_opens_when_every_trainer_is_ready() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  mesh.say(1, ready_for(0));
  mesh.say(2, ready_for(0));
  deliver(mesh);
  QVERIFY(received<HubAttempt>(mesh.island(1)).empty());

  mesh.say(3, ready_for(0));
  deliver(mesh);

  for (int i = 1; i <= 3; ++i) {
    const auto attempts = received<HubAttempt>(mesh.island(i));
    QCOMPARE(attempts.size(), std::size_t{1});
    QCOMPARE(attempts[0].attempt, Attempt{1});
    QCOMPARE(attempts[0].order.size(), std::size_t{3});
    QCOMPARE(attempts[0].order[0].id, IslandId{"isl-1"});  // the same order on all
  }
}

void RoundCoordinatorTest::a_straggler_is_left_behind_when_the_grace_is_over_and_recovers() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  mesh.say(1, ready_for(0));
  mesh.say(2, ready_for(0));
  for (int i = 0; i < 59; ++i) mesh.pass(1s);
  deliver(mesh);
  QVERIFY(received<HubAttempt>(mesh.island(1)).empty());

  mesh.pass(2s);
  deliver(mesh);

  QCOMPARE(received<HubAttempt>(mesh.island(1)).at(0).order.size(), std::size_t{2});
  have(mesh, 1, 1);
  have(mesh, 2, 1);
  deliver(mesh);
  QCOMPARE(received<HubRecover>(mesh.island(3)).size(), std::size_t{1});
  QCOMPARE(received<HubRecover>(mesh.island(3))[0].outer_step, OuterStep{1});
  QVERIFY(received<HubCommit>(mesh.island(3)).empty());
}

void RoundCoordinatorTest::a_commit_is_told_to_all_members_once_all_hold_the_same_digest() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  all_ready(mesh, 2);
  have(mesh, 1, 1);
  deliver(mesh);
  QVERIFY(received<HubCommit>(mesh.island(1)).empty());

  have(mesh, 2, 1);
  deliver(mesh);

  for (int i = 1; i <= 2; ++i) {
    const auto commits = received<HubCommit>(mesh.island(i));
    QCOMPARE(commits.size(), std::size_t{1});
    QCOMPARE(commits[0].digest, kDigest);
    QCOMPARE(commits[0].members.size(), std::size_t{2});
    QVERIFY(!commits[0].signature.empty());
    // the next round begins right behind it
    QCOMPARE(received<HubRoundBegin>(mesh.island(i)).back().round, OuterStep{1});
  }
  QCOMPARE(mesh.violation(), std::string());
}

void RoundCoordinatorTest::three_rounds_are_committed_and_their_hashes_are_equal() {
  RunConfig run = run_for(3);
  run.max_rounds = 3;
  SimulatedMesh mesh(run);
  for (int i = 1; i <= 3; ++i) mesh.start(i);

  mesh.settle();

  QCOMPARE(mesh.commits().size(), std::size_t{3});
  QCOMPARE(mesh.count<StateHashesCompared>(), 3);
  for (const CoordinatorNews& news : mesh.news()) {
    if (const auto* compared = std::get_if<StateHashesCompared>(&news)) QVERIFY(compared->equal);
  }
  QCOMPARE(mesh.count<RunFinished>(), 1);
  QCOMPARE(mesh.violation(), std::string());
}

void RoundCoordinatorTest::a_pseudo_gradient_that_is_not_finite_sends_its_island_to_recover() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);

  mesh.say(1, IslandReady{OuterStep{0}, 64, std::nan(""), 2.0});
  deliver(mesh);

  QCOMPARE(received<HubRecover>(mesh.island(1)).size(), std::size_t{1});
  mesh.say(2, ready_for(0));
  deliver(mesh);
  QCOMPARE(received<HubAttempt>(mesh.island(2)).at(0).order.size(), std::size_t{1});
}

void RoundCoordinatorTest::more_tokens_than_leased_are_refused() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);

  mesh.say(1, IslandReady{OuterStep{0}, 65, 0.5, 2.0});

  QVERIFY(mesh.island(1).goodbye && mesh.island(1).goodbye->code == ErrorCode::kProtocol);
}

// ---- failures

void RoundCoordinatorTest::a_member_that_dies_while_training_does_not_stop_the_round() {
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

void RoundCoordinatorTest::a_member_that_dies_in_an_attempt_is_dropped_from_the_next_at_once() {
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

void RoundCoordinatorTest::when_all_that_remain_have_the_average_of_a_lost_member_it_is_committed() {
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

void RoundCoordinatorTest::a_member_that_never_gets_its_average_is_left_behind() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  all_ready(mesh, 2);
  have(mesh, 1, 1);
  for (int i = 0; i < 59; ++i) mesh.pass(1s);
  QCOMPARE(mesh.hub().committed(), OuterStep{0});

  mesh.pass(2s);
  deliver(mesh);

  QCOMPARE(mesh.hub().committed(), OuterStep{1});
  QVERIFY(received<HubCommit>(mesh.island(2)).empty());
  QCOMPARE(received<HubRecover>(mesh.island(2)).size(), std::size_t{1});
  QCOMPARE(mesh.violation(), std::string());
}

void RoundCoordinatorTest::the_lease_of_a_dead_island_is_given_out_again_first() {
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

void RoundCoordinatorTest::a_silent_island_is_dead() {
  SimulatedMesh mesh(run_for(1));
  begin_first_round(mesh, 1);

  const auto actions = mesh.hub().next(Tick{}, Clock::time_point(1h) + 7s);

  QVERIFY(mesh.hub().islands().empty());
  QVERIFY(std::ranges::any_of(actions, [](const auto& a) { return std::holds_alternative<CloseConnection>(a); }));
}

void RoundCoordinatorTest::a_reported_failure_aborts_and_is_retried_once_at_once_then_with_growing_delay() {
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

void RoundCoordinatorTest::an_edge_that_fails_three_times_costs_its_poorer_end_the_round() {
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

void RoundCoordinatorTest::a_lone_island_that_cannot_average_is_sent_away() {
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

void RoundCoordinatorTest::differing_digests_are_averaged_again_and_the_minority_is_sent_away() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  all_ready(mesh, 3);

  for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
    QVERIFY(!mesh.island(2).goodbye.has_value());
    have(mesh, 1, attempt);
    have(mesh, 2, attempt, std::string(64, 'e'));
    have(mesh, 3, attempt);
    mesh.pass(5s);
    deliver(mesh);
  }

  QVERIFY(mesh.island(2).goodbye.has_value());
  QVERIFY(!mesh.island(1).goodbye.has_value());
  QCOMPARE(received<HubAttempt>(mesh.island(1)).back().order.size(), std::size_t{2});
  QCOMPARE(mesh.hub().committed(), OuterStep{0});
}

void RoundCoordinatorTest::when_all_trainers_are_gone_the_receivers_train_the_round() {
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

// ---- coming back

void RoundCoordinatorTest::an_island_that_reconnects_in_time_keeps_its_lease() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  mesh.say(2, ready_for(0));
  mesh.cut(2);
  mesh.say(1, ready_for(0));
  mesh.pass(1s);

  mesh.link(2);
  deliver(mesh);
  const auto begun = received<HubRoundBegin>(mesh.island(2));
  QCOMPARE(begun.size(), std::size_t{2});
  QCOMPARE(begun[0].lease_first_sequence, begun[1].lease_first_sequence);
  mesh.say(2, ready_for(0));
  deliver(mesh);

  QCOMPARE(received<HubAttempt>(mesh.island(1)).at(0).order.size(), std::size_t{2});
}

void RoundCoordinatorTest::an_island_that_missed_the_commit_gets_it_when_it_comes_back() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  all_ready(mesh, 2);
  have(mesh, 1, 1);
  have(mesh, 2, 1);
  mesh.cut(2);  // before it read the commit
  deliver(mesh);
  QVERIFY(received<HubCommit>(mesh.island(2)).empty());

  mesh.link(2);
  deliver(mesh);

  QCOMPARE(received<HubCommit>(mesh.island(2)).size(), std::size_t{1});
  QCOMPARE(mesh.island(2).outer_step, std::optional(OuterStep{1}));
  QVERIFY(received<HubRecover>(mesh.island(2)).empty());
  QCOMPARE(received<HubRoundBegin>(mesh.island(2)).back().round, OuterStep{1});
  QCOMPARE(mesh.violation(), std::string());
}

void RoundCoordinatorTest::one_that_does_not_hold_the_committed_average_recovers() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  all_ready(mesh, 2);
  have(mesh, 1, 1);
  have(mesh, 2, 1);
  mesh.cut(2);
  mesh.island(2).average.reset();  // its process died and started again from its checkpoint
  deliver(mesh);

  mesh.link(2);
  deliver(mesh);

  QCOMPARE(received<HubRecover>(mesh.island(2)).size(), std::size_t{1});
}

void RoundCoordinatorTest::a_wrong_state_hash_sends_its_island_to_recover() {
  SimulatedMesh mesh(run_for(3));
  begin_first_round(mesh, 3);
  all_ready(mesh, 3);
  mesh.island(2).state_hash = fake_sha256("diverged");
  for (int i = 1; i <= 3; ++i) have(mesh, i, 1);

  deliver(mesh);

  QCOMPARE(received<HubRecover>(mesh.island(2)).size(), std::size_t{1});
  QCOMPARE(mesh.count<StateHashesCompared>(), 1);
  for (const CoordinatorNews& news : mesh.news()) {
    if (const auto* compared = std::get_if<StateHashesCompared>(&news)) QVERIFY(!compared->equal);
  }
  mesh.say(1, ready_for(1));
  mesh.say(3, ready_for(1));
  deliver(mesh);
  QCOMPARE(received<HubAttempt>(mesh.island(1)).back().order.size(), std::size_t{2});
}

void RoundCoordinatorTest::a_hub_that_restarts_goes_on_with_the_open_round() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  all_ready(mesh, 2);
  mesh.settle();  // some rounds on
  QVERIFY(mesh.hub().committed() > OuterStep{3});
  mesh.trains_by_itself = false;
  const OuterStep committed = mesh.hub().committed();
  const auto lease = received<HubRoundBegin>(mesh.island(1)).back().lease_first_sequence;

  mesh.restart_hub();
  mesh.tick();
  mesh.link(1);
  mesh.link(2);
  deliver(mesh);

  QCOMPARE(mesh.hub().committed(), committed);
  QVERIFY(mesh.hub().round_open());
  QCOMPARE(received<HubRoundBegin>(mesh.island(1)).back().round, committed);
  QCOMPARE(received<HubRoundBegin>(mesh.island(1)).back().lease_first_sequence, lease);
  mesh.trains_by_itself = true;
  mesh.settle();
  QVERIFY(mesh.hub().committed() > committed);
  QCOMPARE(mesh.violation(), std::string());
}

void RoundCoordinatorTest::a_hub_that_restarts_after_the_commit_tells_it_again() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  all_ready(mesh, 2);
  have(mesh, 1, 1);
  have(mesh, 2, 1);

  mesh.restart_hub();  // nobody has read the commit
  mesh.link(1);
  mesh.link(2);
  deliver(mesh);

  for (int i = 1; i <= 2; ++i) {
    QCOMPARE(received<HubCommit>(mesh.island(i)).size(), std::size_t{1});
    QCOMPARE(mesh.island(i).outer_step, std::optional(OuterStep{1}));
  }
  QCOMPARE(mesh.violation(), std::string());
}

// ---- the end

void RoundCoordinatorTest::leaving_ends_membership_at_once() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  mesh.say(1, ready_for(0));

  mesh.say(2, IslandLeaving{"its owner takes it back"});
  deliver(mesh);

  QCOMPARE(mesh.hub().islands().size(), std::size_t{1});
  QCOMPARE(received<HubAttempt>(mesh.island(1)).at(0).order.size(), std::size_t{1});
  QCOMPARE(received<HubRoster>(mesh.island(1)).back().islands.size(), std::size_t{1});
}

void RoundCoordinatorTest::after_the_last_round_one_island_validates_and_all_are_sent_home() {
  RunConfig run = run_for(2);
  run.max_rounds = 1;
  run.validate_every = 1;
  SimulatedMesh mesh(run);
  begin_first_round(mesh, 2);
  QVERIFY(received<HubRoundBegin>(mesh.island(1)).at(0).validate);
  QVERIFY(!received<HubRoundBegin>(mesh.island(2)).at(0).validate);
  all_ready(mesh, 2);
  have(mesh, 1, 1);
  have(mesh, 2, 1);
  deliver(mesh);
  QVERIFY(received<HubRoundBegin>(mesh.island(1)).back().validate);
  QCOMPARE(received<HubRoundBegin>(mesh.island(1)).back().inner_steps, 0u);
  QVERIFY(!mesh.island(2).goodbye.has_value());

  mesh.say(1, IslandValidation{OuterStep{1}, 1.5});

  for (int i = 1; i <= 2; ++i) QVERIFY(mesh.island(i).goodbye && mesh.island(i).goodbye->finished);
  QCOMPARE(mesh.hub().phase(), RoundCoordinator::Phase::kFinished);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::RoundCoordinatorTest)
#include "round_coordinator_test.moc"
