// Who is let in, when, and with what to train on.
#include <QtTest>

#include "tests/net/mesh/coordinator_script.h"

namespace atl {

class CoordinatorJoiningTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_first_round_waits_for_the_islands_that_the_run_asks_for();
  void all_islands_of_a_round_get_leases_that_do_not_overlap();
  void an_island_whose_initial_parameters_differ_fetches_them_and_is_refused_in_the_end();
  void what_a_run_begins_with_is_made_or_taken_from_who_fetched_it_data();
  void what_a_run_begins_with_is_made_or_taken_from_who_fetched_it();
  void a_run_that_begins_at_the_hub_is_fetched_from_there_until_an_island_has_it();
  void a_rollback_to_the_beginning_is_fetched_from_the_hub();
  void an_island_of_another_version_is_refused();
  void an_island_that_claims_a_later_state_without_proof_recovers();
  void one_island_too_many_is_refused();
  void a_joiner_recovers_receives_one_round_and_trains_the_next();
  void an_attempt_waits_a_moment_for_a_receiver();
  void a_joiner_waits_until_somebody_holds_the_committed_state();
  void rounds_shorter_than_a_fetch_wait_now_and_then();
  void a_round_waits_for_a_fetch_with_several_fragments_and_with_two_members_data();
  void a_round_waits_for_a_fetch_with_several_fragments_and_with_two_members();
  void nobody_waits_for_the_fetch_of_a_paused_island();
};

void CoordinatorJoiningTest::the_first_round_waits_for_the_islands_that_the_run_asks_for() {
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

void CoordinatorJoiningTest::all_islands_of_a_round_get_leases_that_do_not_overlap() {
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

void CoordinatorJoiningTest::an_island_whose_initial_parameters_differ_fetches_them_and_is_refused_in_the_end() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 1);
  mesh.island(2).lies.state_hash = true;
  mesh.start(2);

  mesh.settle();

  QCOMPARE(received<HubInitialise>(mesh.island(2)).size(), std::size_t{1});
  QCOMPARE(received<HubRecover>(mesh.island(2)).back().sources, (std::vector{IslandId{"isl-1"}}));
  QVERIFY(!mesh.hub().round_open());
  QVERIFY(mesh.island(2).goodbye.has_value());
  QVERIFY(mesh.island(2).goodbye->message.find("the hub's version of atoll") != std::string::npos);
  QCOMPARE(mesh.hub().islands().size(), std::size_t{1});
}

void CoordinatorJoiningTest::what_a_run_begins_with_is_made_or_taken_from_who_fetched_it_data() {
  QTest::addColumn<QString>("initial_state");
  QTest::newRow("drawn from the seed") << "";
  QTest::newRow("a published state") << "s3://bucket/run/outer-7";
}

void CoordinatorJoiningTest::what_a_run_begins_with_is_made_or_taken_from_who_fetched_it() {
  QFETCH(const QString, initial_state);
  RunConfig run = run_for(2);
  run.initial_state = initial_state.toStdString();
  const bool from_store = !initial_state.isEmpty();
  SimulatedMesh mesh(run);
  mesh.start(1);
  deliver(mesh);
  QCOMPARE(received<HubInitialise>(mesh.island(1)).size(), std::size_t{1});

  mesh.start(2);
  deliver(mesh);

  QCOMPARE(received<HubInitialise>(mesh.island(2)).size(), std::size_t{from_store ? 0u : 1u});
  const auto recover = received<HubRecover>(mesh.island(2));
  QCOMPARE(recover.size(), std::size_t{from_store ? 1u : 0u});
  if (from_store) QCOMPARE(recover[0].sources, (std::vector{IslandId{"isl-1"}}));
}

// A hub that has them: nothing is made, and who comes later takes them from who has them by then.
void CoordinatorJoiningTest::a_run_that_begins_at_the_hub_is_fetched_from_there_until_an_island_has_it() {
  RunConfig run = run_for(3);
  run.initial_state = "hub:a model";
  SimulatedMesh mesh(run);
  mesh.start(1);
  mesh.start(2);
  deliver(mesh);

  const auto first = received<HubRecover>(mesh.island(1));
  QCOMPARE(first.size(), std::size_t{1});
  QCOMPARE(first[0].outer_step, OuterStep{0});
  QCOMPARE(first[0].state_hash, mesh.honest_hashes[0]);
  QVERIFY(first[0].sources.empty());
  QVERIFY(received<HubInitialise>(mesh.island(1)).empty());

  mesh.settle();
  mesh.start(3);
  mesh.settle();

  const auto last = received<HubRecover>(mesh.island(3));
  QVERIFY(!last.empty());
  QVERIFY(!last[0].sources.empty());
  QVERIFY(mesh.hub().committed() > OuterStep{0});
}

// What nobody keeps any more is at the hub: no way back is needed, and none is taken.
void CoordinatorJoiningTest::a_rollback_to_the_beginning_is_fetched_from_the_hub() {
  RunConfig run = run_for(2);
  run.initial_state = "hub:a model";
  SimulatedMesh mesh(run);
  mesh.start(1);
  mesh.start(2);
  for (int i = 0; i < 60 && mesh.hub().committed() == OuterStep{0}; ++i) mesh.settle_once();
  QVERIFY(mesh.hub().committed() > OuterStep{0});

  mesh.roll_back(OuterStep{0});
  deliver(mesh);
  QCOMPARE(mesh.hub().committed(), OuterStep{0});
  const HubRecover told = received<HubRecover>(mesh.island(1)).back();
  QCOMPARE(told.outer_step, OuterStep{0});
  QVERIFY(told.sources.empty());
  for (int i = 0; i < 60 && mesh.hub().committed() == OuterStep{0}; ++i) mesh.settle_once();

  QVERIFY(mesh.hub().committed() > OuterStep{0});
}

void CoordinatorJoiningTest::an_island_of_another_version_is_refused() {
  SimulatedMesh mesh(run_for(1));
  IslandConnected event;
  event.entry.id = IslandId{"isl-1"};
  event.hello.version = kMeshVersion + 1;

  const auto actions = mesh.hub().next(event, Clock::time_point(1h));

  QCOMPARE(actions.size(), std::size_t{2});
  const auto* goodbye = std::get_if<HubGoodbye>(&std::get<SendTo>(actions[0]).message);
  QVERIFY(goodbye != nullptr && goodbye->code == ErrorCode::kVersionUnsupported);
  QVERIFY(std::holds_alternative<CloseConnection>(actions[1]));
}

void CoordinatorJoiningTest::an_island_that_claims_a_later_state_without_proof_recovers() {
  SimulatedMesh mesh(run_for(2));
  mesh.start(2);
  mesh.island(1).running = true;
  mesh.island(1).outer_step = OuterStep{7};
  mesh.island(1).state_hash = fake_sha256("later");

  mesh.link(1);
  deliver(mesh);

  QCOMPARE(mesh.hub().committed(), OuterStep{0});
  QCOMPARE(received<HubInitialise>(mesh.island(1)).size(), std::size_t{1});
  QVERIFY(mesh.hub().round_open());
}

void CoordinatorJoiningTest::one_island_too_many_is_refused() {
  RunConfig run = run_for(2);
  run.max_islands = 2;
  SimulatedMesh mesh(run);

  begin_first_round(mesh, 3);

  QCOMPARE(mesh.hub().islands().size(), std::size_t{2});
  QVERIFY(mesh.island(3).goodbye && mesh.island(3).goodbye->code == ErrorCode::kPermissionDenied);
}

void CoordinatorJoiningTest::a_joiner_recovers_receives_one_round_and_trains_the_next() {
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

void CoordinatorJoiningTest::an_attempt_waits_a_moment_for_a_receiver() {
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

void CoordinatorJoiningTest::a_joiner_waits_until_somebody_holds_the_committed_state() {
  SimulatedMesh mesh(run_for(1));
  begin_first_round(mesh, 1);
  all_ready(mesh, 1);
  mesh.trains_by_itself = false;
  mesh.start(2);
  have(mesh, 1, 1);  // committed, but nobody has taken the outer step yet
  mesh.island(2).received.clear();

  while (mesh.act(mesh.island(2))) {
  }
  QVERIFY(!received<HubWelcome>(mesh.island(2)).empty());  // the hub knows of it, and has nobody to send it to
  QVERIFY(received<HubRecover>(mesh.island(2)).empty());
  deliver(mesh);

  QCOMPARE(received<HubRecover>(mesh.island(2)).size(), std::size_t{1});
}

// Ten rounds a second: whatever is fetched is outdated when it is there. Now and then the next round waits, at first
// for half a second, and then for a twentieth of the fetch's age; who does not come has cost the others a tenth of
// this while at most. Meanwhile it is said for whom the round waits.
void CoordinatorJoiningTest::rounds_shorter_than_a_fetch_wait_now_and_then() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  mesh.trains_by_itself = true;
  const auto train_until = [&](std::uint32_t committed) {
    bool goes_on = true;
    while (goes_on && mesh.hub().committed() < OuterStep{committed}) {
      goes_on = mesh.act(mesh.island(1));
      goes_on = mesh.act(mesh.island(2)) || goes_on;
    }
  };
  train_until(1);
  mesh.start(3);
  while (mesh.act(mesh.island(3)) && received<HubWelcome>(mesh.island(3)).empty()) {
  }
  QVERIFY(!received<HubWelcome>(mesh.island(3)).empty());

  int ticks = 0;
  int waited = 0;
  int longest = 0;  // in ticks
  const auto go_on = [&] {
    const std::uint32_t before = mesh.hub().committed().value;
    train_until(before + 1);
    const bool waits = mesh.hub().committed().value == before;
    longest = waits ? longest + 1 : 0;
    waited += waits ? 1 : 0;
    mesh.pass(100ms);
    ++ticks;
    return longest;
  };
  int at_first = 0;
  for (int i = 0; i < 80; ++i) at_first = std::max(at_first, go_on());
  int later = 0;
  for (int i = 0; i < 700; ++i) later = std::max(later, go_on());
  QVERIFY2(at_first >= 4 && at_first <= 8, qPrintable(QString::number(at_first)));
  QVERIFY2(later >= 22 && later <= 32, qPrintable(QString::number(later)));
  QVERIFY2(waited * 8 <= ticks, qPrintable(QString("%1 of %2").arg(waited).arg(ticks)));

  QCOMPARE(mesh.hub().fetch_wait(), std::string());
  while (go_on() == 0) QVERIFY(ticks < 2000);
  QVERIFY2(mesh.hub().fetch_wait().find("waits for isl-3") != std::string::npos, mesh.hub().fetch_wait().c_str());
  while (mesh.act(mesh.island(3))) {
  }
  go_on();

  QCOMPARE(mesh.commits().back().members.size(), std::size_t{2});  // it was not in that one's inner phase ...
  for (int i = 0; i < 3; ++i) {
    mesh.settle_once();
    go_on();
  }
  QVERIFY(std::ranges::any_of(mesh.commits(), [](const HubCommit& commit) { return commit.members.size() == 3; }));
  QVERIFY2(mesh.violation().empty(), mesh.violation().c_str());
}

namespace {

// Who trains acts for a tick, and the last island, whose fetch takes longer than any round, does not.
void pass_a_tick(SimulatedMesh& mesh, int trainers, std::chrono::milliseconds tick = 100ms) {
  for (int turn = 0; turn < 40; ++turn) {
    for (int i = 1; i <= trainers; ++i) mesh.act(mesh.island(i));
  }
  mesh.pass(tick);
}

// The last island comes, is told to fetch, and is left alone for a while.
void let_one_fetch(SimulatedMesh& mesh, int trainers, int seconds) {
  for (int i = 1; i <= trainers; ++i) mesh.start(i);
  mesh.trains_by_itself = true;
  for (int i = 0; i < 3; ++i) pass_a_tick(mesh, trainers);
  mesh.start(trainers + 1);
  for (int i = 0; i < seconds; ++i) pass_a_tick(mesh, trainers, 1s);
}

bool waits_within(SimulatedMesh& mesh, int trainers, int seconds) {
  while (seconds-- > 0 && mesh.hub().fetch_wait().empty()) pass_a_tick(mesh, trainers, 1s);
  return !mesh.hub().fetch_wait().empty();
}

}  // namespace

void CoordinatorJoiningTest::a_round_waits_for_a_fetch_with_several_fragments_and_with_two_members_data() {
  QTest::addColumn<unsigned>("fragments");
  QTest::addColumn<int>("trainers");
  QTest::newRow("one, and one that fetches") << 1u << 1;
  QTest::newRow("four fragments") << 4u << 2;
}

// Also after it was behind for more than ten minutes.
void CoordinatorJoiningTest::a_round_waits_for_a_fetch_with_several_fragments_and_with_two_members() {
  QFETCH(const unsigned, fragments);
  QFETCH(const int, trainers);
  RunConfig run = run_for(1);
  run.fragments = fragments;
  SimulatedMesh mesh(run);
  let_one_fetch(mesh, trainers, 700);
  QVERIFY(mesh.most_open == fragments);

  // Rounds overlap again, and yet there is a time in which none is open.
  QVERIFY(waits_within(mesh, trainers, 600));
  for (int i = 0; i < 5; ++i) pass_a_tick(mesh, trainers);
  QVERIFY(!mesh.hub().round_open());
  const std::uint32_t committed = mesh.hub().committed().value;
  for (int i = 0; i < 100; ++i) pass_a_tick(mesh, trainers);
  QCOMPARE(mesh.hub().committed().value, committed);
  while (mesh.act(mesh.island(trainers + 1))) {
  }

  QCOMPARE(mesh.hub().fetch_wait(), std::string());
  for (int i = 0; i < 10; ++i) pass_a_tick(mesh, trainers + 1);
  QCOMPARE(mesh.commits().back().members.size(), static_cast<std::size_t>(trainers + 1));
  QVERIFY2(mesh.violation().empty(), mesh.violation().c_str());
}

void CoordinatorJoiningTest::nobody_waits_for_the_fetch_of_a_paused_island() {
  SimulatedMesh mesh(run_for(1));
  let_one_fetch(mesh, 2, 0);
  QVERIFY(waits_within(mesh, 2, 100));
  const std::uint32_t committed = mesh.hub().committed().value;

  mesh.say(3, IslandLeaving{"", true});
  QCOMPARE(mesh.hub().fetch_wait(), std::string());
  for (int i = 0; i < 600; ++i) pass_a_tick(mesh, 2);

  QVERIFY(mesh.hub().committed().value > committed + 500);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::CoordinatorJoiningTest)
#include "coordinator_joining_test.moc"
