// What would outlive the islands: up to which outer step the run is safe, and who writes which state to the store.
#include <QtTest>

#include "tests/net/mesh/coordinator_script.h"

namespace atl {
namespace {

constexpr int kRounds = 4;

// Three islands that trained some rounds; what is on their disks a test says. hashes[N]: of outer step N.
struct Trained {
  explicit Trained(RunConfig run = run_for(3)) : mesh(std::move(run)) {
    for (int i = 1; i <= 3; ++i) mesh.start(i);
    deliver(mesh);
    for (int i = 0; i < 100 && hashes.size() <= kRounds; ++i) {
      if (const auto step = mesh.island(1).outer_step) hashes[step->value] = mesh.island(1).state_hash;
      mesh.settle_once();
    }
    deliver(mesh);
  }
  HeldState state(std::uint32_t step) const { return {OuterStep{step}, hashes.at(step)}; }
  void keeps(int island, std::vector<HeldState> states) { mesh.say(island, IslandDurable{std::move(states)}); }
  // Island 1 writes it to the store, or says so.
  void upload(const HeldState& state, bool is_true = true) {
    mesh.island(1).can_upload = true;
    mesh.cut(1);
    mesh.link(1);
    deliver(mesh);
    keeps(1, {state});
    mesh.say(1, IslandUploaded{state.outer_step, state.state_hash, {}});
    if (is_true) mesh.stored.push_back(state);
  }
  // All are killed, and nothing is left on any disk but the hub's.
  void lose_all() {
    for (int i = 1; i <= 3; ++i) mesh.kill(i);  // the islands keep nothing: keeps_states is false
    mesh.restart_hub();
  }
  HeldState committed() { return {mesh.hub().committed(), mesh.honest_hashes.at(mesh.hub().committed().value)}; }
  void wait(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      mesh.pass(1s);
      mesh.settle();
    }
  }
  std::optional<OuterStep> safe() { return mesh.hub().safekeeping().safe_step(); }
  std::vector<std::uint32_t> told_safe(int island) {
    std::vector<std::uint32_t> steps;
    for (const HubSafe& told : received<HubSafe>(mesh.island(island))) steps.push_back(told.outer_step.value);
    return steps;
  }
  void pass_minutes(int minutes) {
    for (int i = 0; i < 15 * minutes; ++i) {
      mesh.pass(4s);
      deliver(mesh);
    }
  }

  SimulatedMesh mesh;
  std::map<std::uint32_t, std::string> hashes;
};

RunConfig uploading_run(std::uint32_t every) {
  RunConfig run = run_for(3);
  run.upload_store = "s3://bucket/run";
  run.upload_every = every;
  return run;
}

// Three islands, of which the first has credentials.
RunConfig three_rounds() {
  RunConfig run = uploading_run(2);
  run.max_rounds = 3;
  return run;
}
HeldState train_to_the_end(SimulatedMesh& mesh) {
  for (int i = 1; i <= 3; ++i) mesh.start(i);
  deliver(mesh);
  mesh.island(1).can_upload = true;
  mesh.cut(1);
  mesh.link(1);
  deliver(mesh);
  for (int i = 0; i < 100 && mesh.hub().committed() < OuterStep{3}; ++i) mesh.settle_once();
  deliver(mesh);
  return {OuterStep{3}, mesh.island(1).state_hash};
}

// It comes again, with credentials.
void gets_credentials(Trained& run, int island) {
  run.mesh.island(island).can_upload = true;
  run.mesh.cut(island);
  run.mesh.link(island);
  deliver(run.mesh);
}

// Both could write the state to the store; the first, which came first, was told to.
void first_of_two_is_asked(Trained& run) {
  for (const int island : {1, 2}) {
    gets_credentials(run, island);
    run.keeps(island, {run.state(3)});
  }
  deliver(run.mesh);
}

}  // namespace

class CoordinatorSafeTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_step_is_safe_once_as_many_islands_as_the_run_asks_for_keep_it_data();
  void a_step_is_safe_once_as_many_islands_as_the_run_asks_for_keep_it();
  void a_newer_state_keeps_the_rounds_before_it();
  void what_is_no_state_of_the_run_counts_for_nothing();
  void islands_are_told_when_it_changes_and_when_they_come();
  void what_a_rollback_undid_is_said_to_be_safe_no_more();
  void what_was_on_disks_that_left_for_good_is_said_to_be_safe_no_more();
  void one_that_has_credentials_is_asked_for_an_upload_when_one_is_due();
  void nobody_is_asked_twice_for_the_same_stretch_of_rounds();
  void when_an_upload_fails_another_island_is_asked_after_a_pause();
  void who_alone_can_upload_is_asked_again_and_again_and_the_pause_is_told();
  void what_a_run_comes_to_is_published_before_it_ends();
  void a_run_ends_although_what_it_came_to_cannot_be_published();
  void when_the_uploader_is_gone_another_is_asked();
  void when_the_uploader_gets_no_further_another_is_asked();
  void an_uploader_has_a_day_whatever_it_says_data();
  void an_uploader_has_a_day_whatever_it_says();
  void an_answer_to_what_was_not_asked_is_ignored();
  void what_only_the_store_holds_is_fetched_from_there();
  void the_second_that_recovers_fetches_from_the_first_and_not_from_the_store();
  void an_older_state_in_the_store_is_a_way_back();
  void a_store_that_lacks_what_was_said_to_be_there_is_told_and_leaves_a_way_back();
};

void CoordinatorSafeTest::a_step_is_safe_once_as_many_islands_as_the_run_asks_for_keep_it_data() {
  QTest::addColumn<quint32>("copies");
  QTest::addColumn<QList<int>>("kept");  // by island, of how many rounds its newest state is; -1: it keeps none
  QTest::addColumn<int>("safe");         // -1: nothing is
  QTest::newRow("one copy") << 1u << QList<int>{3, 1, 2} << 3;
  QTest::newRow("two copies") << 2u << QList<int>{3, 1, 2} << 2;
  QTest::newRow("three copies") << 3u << QList<int>{3, 1, 2} << 1;
  QTest::newRow("more copies than islands: all of them") << 5u << QList<int>{3, 1, 2} << 1;
  QTest::newRow("two copies, one keeps nothing") << 2u << QList<int>{3, -1, 2} << 2;
  QTest::newRow("all of them, and one keeps nothing") << 3u << QList<int>{3, -1, 2} << -1;
  QTest::newRow("nobody keeps anything") << 1u << QList<int>{-1, -1, -1} << -1;
}

void CoordinatorSafeTest::a_step_is_safe_once_as_many_islands_as_the_run_asks_for_keep_it() {
  QFETCH(const quint32, copies);
  QFETCH(const QList<int>, kept);
  QFETCH(const int, safe);
  RunConfig config = run_for(3);
  config.safe_copies = copies;
  Trained run(config);
  for (int i = 0; i < 3; ++i) {
    if (kept[i] >= 0) run.keeps(i + 1, {run.state(static_cast<std::uint32_t>(kept[i]))});
  }

  const auto found = run.safe();

  QCOMPARE(found ? static_cast<int>(found->value) : -1, safe);
}

void CoordinatorSafeTest::a_newer_state_keeps_the_rounds_before_it() {
  Trained run;
  run.keeps(1, {run.state(3), run.state(1)});
  run.keeps(2, {run.state(2)});
  QCOMPARE(run.safe(), std::optional(OuterStep{2}));
}

void CoordinatorSafeTest::what_is_no_state_of_the_run_counts_for_nothing() {
  Trained run;
  run.keeps(1, {run.state(2)});
  run.keeps(2, {{OuterStep{3}, fake_sha256("another")}, {OuterStep{1000}, fake_sha256("of the future")}});
  QCOMPARE(run.safe(), std::optional<OuterStep>());
  run.keeps(2, {{OuterStep{3}, fake_sha256("another")}, run.state(1)});
  QCOMPARE(run.safe(), std::optional(OuterStep{1}));
}

void CoordinatorSafeTest::islands_are_told_when_it_changes_and_when_they_come() {
  Trained run;
  const auto told = [&](int island) { return run.told_safe(island); };
  run.keeps(1, {run.state(2)});
  deliver(run.mesh);
  QCOMPARE(told(1), std::vector<std::uint32_t>{0});  // what the run began with can be made again
  run.keeps(2, {run.state(1)});
  run.keeps(3, {run.state(1)});  // changes nothing
  deliver(run.mesh);
  for (int i = 1; i <= 3; ++i) QCOMPARE(told(i), (std::vector<std::uint32_t>{0, 1}));
  run.keeps(3, {run.state(2)});
  deliver(run.mesh);
  QCOMPARE(told(1), (std::vector<std::uint32_t>{0, 1, 2}));
  run.mesh.cut(1);
  run.mesh.link(1);
  deliver(run.mesh);
  QVERIFY(told(1).size() > 3);  // as its hello says
}

void CoordinatorSafeTest::what_a_rollback_undid_is_said_to_be_safe_no_more() {
  Trained run;
  run.keeps(1, {run.state(3), run.state(1)});
  run.keeps(2, {run.state(3), run.state(1)});
  deliver(run.mesh);
  QCOMPARE(run.told_safe(3).back(), 3u);

  run.mesh.roll_back(OuterStep{2});
  deliver(run.mesh);
  QCOMPARE(run.told_safe(3).back(), 1u);
  run.mesh.roll_back(OuterStep{0});
  deliver(run.mesh);

  QCOMPARE(run.told_safe(3).back(), 0u);
  QCOMPARE(run.safe(), std::optional<OuterStep>());
}

void CoordinatorSafeTest::what_was_on_disks_that_left_for_good_is_said_to_be_safe_no_more() {
  Trained run;
  run.keeps(1, {run.state(3)});
  run.keeps(2, {run.state(2)});
  deliver(run.mesh);
  QCOMPARE(run.told_safe(3).back(), 2u);

  run.mesh.cut(1);
  deliver(run.mesh);
  QCOMPARE(run.told_safe(3).back(), 2u);  // it may come back, with its disk
  run.mesh.say(2, IslandLeaving{"its owner had enough"});
  deliver(run.mesh);

  QCOMPARE(run.told_safe(3).back(), 0u);
}

void CoordinatorSafeTest::one_that_has_credentials_is_asked_for_an_upload_when_one_is_due() {
  Trained run(uploading_run(2));
  run.keeps(1, {run.state(3)});
  run.keeps(2, {run.state(1)});
  gets_credentials(run, 2);
  run.keeps(2, {run.state(1)});  // not due: of fewer rounds
  deliver(run.mesh);
  QCOMPARE(received<HubUpload>(run.mesh.island(2)).size(), std::size_t{0});
  run.keeps(2, {run.state(1), run.state(3)});
  deliver(run.mesh);
  QCOMPARE(received<HubUpload>(run.mesh.island(1)).size(), std::size_t{0});
  const auto asked = received<HubUpload>(run.mesh.island(2));
  QCOMPARE(asked.size(), std::size_t{1});
  QCOMPARE(asked[0].outer_step, OuterStep{3});
  QCOMPARE(asked[0].state_hash, run.hashes.at(3));
}

void CoordinatorSafeTest::nobody_is_asked_twice_for_the_same_stretch_of_rounds() {
  Trained run(uploading_run(2));
  gets_credentials(run, 1);
  run.keeps(1, {run.state(2)});
  run.mesh.say(1, IslandUploaded{OuterStep{2}, run.hashes.at(2), {}});
  QCOMPARE(run.mesh.hub().safekeeping().uploaded(), std::optional(OuterStep{2}));
  run.keeps(1, {run.state(3)});
  deliver(run.mesh);
  QCOMPARE(received<HubUpload>(run.mesh.island(1)).size(), std::size_t{1});
  run.keeps(1, {run.state(4)});
  deliver(run.mesh);
  QCOMPARE(received<HubUpload>(run.mesh.island(1)).size(), std::size_t{2});
  QCOMPARE(run.mesh.count<StateUploaded>(), 1);
}

void CoordinatorSafeTest::when_an_upload_fails_another_island_is_asked_after_a_pause() {
  Trained run(uploading_run(1));
  gets_credentials(run, 1);
  gets_credentials(run, 2);
  run.keeps(1, {run.state(3)});
  run.keeps(2, {run.state(2)});
  run.mesh.say(1, IslandUploaded{OuterStep{3}, run.hashes.at(3), "the bucket is full"});
  deliver(run.mesh);
  QCOMPARE(received<HubUpload>(run.mesh.island(2)).size(), std::size_t{0});
  for (int i = 0; i < 70; ++i) {
    run.mesh.pass(1s);
    deliver(run.mesh);
  }
  QCOMPARE(received<HubUpload>(run.mesh.island(2)).size(), std::size_t{1});
  QCOMPARE(received<HubUpload>(run.mesh.island(1)).size(), std::size_t{1});
  QCOMPARE(run.mesh.hub().safekeeping().uploaded(), std::optional<OuterStep>());
}

void CoordinatorSafeTest::who_alone_can_upload_is_asked_again_and_again_and_the_pause_is_told() {
  Trained run(uploading_run(1));
  gets_credentials(run, 1);
  run.keeps(1, {run.state(3)});
  deliver(run.mesh);
  const auto asked = [&] { return received<HubUpload>(run.mesh.island(1)).size(); };
  const auto fail = [&] {
    run.mesh.say(1, IslandUploaded{OuterStep{3}, run.hashes.at(3), "the bucket is full"});
    deliver(run.mesh);
  };
  const auto pass = [&](int seconds) {
    for (int i = 0; i < seconds; ++i) {
      run.mesh.pass(1s);
      deliver(run.mesh);
    }
  };

  std::size_t times = 1;
  for (const int pause : {5, 10, 20, 40, 80, 160, 320, 320}) {
    QCOMPARE(asked(), times);
    fail();
    pass(pause - 2);
    QCOMPARE(asked(), times++);
    pass(4);
  }
  QCOMPARE(asked(), times);
  QCOMPARE(run.mesh.count<StateUploaded>(), 8);
  run.mesh.say(1, IslandUploaded{OuterStep{3}, run.hashes.at(3), {}});

  QCOMPARE(run.mesh.hub().safekeeping().uploaded(), std::optional(OuterStep{3}));
}

void CoordinatorSafeTest::what_a_run_comes_to_is_published_before_it_ends() {
  SimulatedMesh mesh(three_rounds());
  const HeldState last = train_to_the_end(mesh);
  QVERIFY(!mesh.island(1).goodbye);

  mesh.say(1, IslandDurable{{last}});
  deliver(mesh);
  const auto asked = received<HubUpload>(mesh.island(1));
  QCOMPARE(asked.size(), std::size_t{1});
  QCOMPARE(asked[0].outer_step, OuterStep{3});  // no multiple of two
  QVERIFY(!mesh.island(1).goodbye);
  mesh.say(1, IslandUploaded{last.outer_step, last.state_hash, {}});
  deliver(mesh);

  for (int i = 1; i <= 3; ++i) QVERIFY(mesh.island(i).goodbye && mesh.island(i).goodbye->finished);
  QCOMPARE(mesh.hub().safekeeping().uploaded(), std::optional(OuterStep{3}));
}

void CoordinatorSafeTest::a_run_ends_although_what_it_came_to_cannot_be_published() {
  SimulatedMesh mesh(three_rounds());
  const HeldState last = train_to_the_end(mesh);
  mesh.say(1, IslandDurable{{last}});
  deliver(mesh);

  int minutes = 0;
  std::size_t failed = 0;
  for (; minutes < 60 && !mesh.island(1).goodbye; ++minutes) {
    for (int i = 0; i < 15; ++i) {
      mesh.pass(4s);
      deliver(mesh);
      if (received<HubUpload>(mesh.island(1)).size() == failed) continue;
      ++failed;
      mesh.say(1, IslandUploaded{last.outer_step, last.state_hash, "the bucket is full"});
      deliver(mesh);
    }
  }

  QVERIFY2(minutes >= 9 && minutes <= 12, qPrintable(QString::number(minutes)));
  QVERIFY(failed >= 5);
}

void CoordinatorSafeTest::when_the_uploader_is_gone_another_is_asked() {
  Trained run(uploading_run(1));
  gets_credentials(run, 1);
  gets_credentials(run, 2);
  run.keeps(1, {run.state(3)});
  run.keeps(2, {run.state(3)});
  run.mesh.cut(1);
  deliver(run.mesh);
  run.mesh.tick();
  deliver(run.mesh);
  QCOMPARE(received<HubUpload>(run.mesh.island(2)).size(), std::size_t{1});
}

// It says that it lives, and nothing of it comes to the store.
void CoordinatorSafeTest::when_the_uploader_gets_no_further_another_is_asked() {
  Trained run(uploading_run(1));
  first_of_two_is_asked(run);
  QCOMPARE(received<HubUpload>(run.mesh.island(1)).size(), std::size_t{1});
  const auto asked = [&] { return received<HubUpload>(run.mesh.island(2)).size(); };

  run.pass_minutes(40);
  for (std::uint64_t bytes = 0; bytes < 3; ++bytes) {
    run.mesh.island(1).heartbeat.uploaded_bytes = bytes;
    run.pass_minutes(40);
    QCOMPARE(asked(), std::size_t{0});
  }
  run.pass_minutes(30);

  QCOMPARE(asked(), std::size_t{1});
  QCOMPARE(received<HubUpload>(run.mesh.island(1)).size(), std::size_t{1});
  QCOMPARE(run.mesh.count<StateUploaded>(), 1);
  run.mesh.say(1, IslandUploaded{OuterStep{3}, run.hashes.at(3), {}});  // nobody waits for it any more
  QCOMPARE(run.mesh.hub().safekeeping().uploaded(), std::optional<OuterStep>());
  run.mesh.say(2, IslandUploaded{OuterStep{3}, run.hashes.at(3), {}});
  QCOMPARE(run.mesh.hub().safekeeping().uploaded(), std::optional(OuterStep{3}));
}

void CoordinatorSafeTest::an_uploader_has_a_day_whatever_it_says_data() {
  QTest::addColumn<bool>("grows");
  QTest::addColumn<int>("half_hours");  // until another is asked
  QTest::newRow("a byte more each time") << true << 48;
  QTest::newRow("a byte more, a byte less") << false << 3;
}

void CoordinatorSafeTest::an_uploader_has_a_day_whatever_it_says() {
  QFETCH(const bool, grows);
  QFETCH(const int, half_hours);
  Trained run(uploading_run(1));
  first_of_two_is_asked(run);
  const auto asked = [&] { return received<HubUpload>(run.mesh.island(2)).size(); };

  for (int i = 1; i < half_hours; ++i) {
    run.mesh.island(1).heartbeat.uploaded_bytes = grows ? 100 + i : 100 + i % 2;
    run.pass_minutes(30);
    QCOMPARE(asked(), std::size_t{0});
  }
  run.pass_minutes(32);

  QCOMPARE(asked(), std::size_t{1});
}

void CoordinatorSafeTest::an_answer_to_what_was_not_asked_is_ignored() {
  Trained run(uploading_run(1));
  run.mesh.say(3, IslandUploaded{OuterStep{3}, run.hashes.at(3), {}});
  gets_credentials(run, 1);
  run.keeps(1, {run.state(3)});
  run.mesh.say(2, IslandUploaded{OuterStep{3}, run.hashes.at(3), {}});
  run.mesh.say(1, IslandUploaded{OuterStep{2}, run.hashes.at(2), {}});
  QCOMPARE(run.mesh.hub().safekeeping().uploaded(), std::optional<OuterStep>());
  QCOMPARE(run.mesh.count<StateUploaded>(), 0);
}

void CoordinatorSafeTest::what_only_the_store_holds_is_fetched_from_there() {
  Trained run(uploading_run(1));
  const HeldState before = run.committed();
  run.upload(before);
  run.lose_all();
  for (int i = 1; i <= 3; ++i) run.mesh.start(i);
  deliver(run.mesh);
  for (int i = 1; i <= 3; ++i) {
    const auto told = received<HubRecover>(run.mesh.island(i));
    QCOMPARE(told.size(), std::size_t{1});
    QCOMPARE(told[0].state_hash, before.state_hash);
    QVERIFY(told[0].sources.empty());
  }
  run.wait(5);
  QVERIFY(run.mesh.hub().committed() > before.outer_step);
  QCOMPARE(run.mesh.count<RolledBack>(), 0);
  QCOMPARE(QString::fromStdString(run.mesh.violation()), QString());
}

void CoordinatorSafeTest::the_second_that_recovers_fetches_from_the_first_and_not_from_the_store() {
  Trained run(uploading_run(1));
  const HeldState before = run.committed();
  run.upload(before);
  run.lose_all();
  run.mesh.trains_by_itself = false;
  run.mesh.stored.clear();  // nobody gets on with it yet
  run.mesh.start(1);
  run.mesh.start(2);
  deliver(run.mesh);
  run.mesh.island(1).outer_step = before.outer_step;
  run.mesh.island(1).state_hash = before.state_hash;
  run.mesh.say(1, IslandRecovered{before.outer_step, before.state_hash});
  deliver(run.mesh);
  QCOMPARE(received<HubRecover>(run.mesh.island(2)).back().sources, std::vector<IslandId>{run.mesh.island(1).id});
}

void CoordinatorSafeTest::an_older_state_in_the_store_is_a_way_back() {
  Trained run(uploading_run(1));
  run.upload(run.state(2));
  const OuterStep lost = run.mesh.hub().committed();
  QVERIFY(lost > OuterStep{2});
  run.lose_all();
  run.mesh.start(1);
  run.wait(61);
  QVERIFY(run.mesh.hub().standstill().has_value());
  QCOMPARE(run.mesh.hub().standstill()->back_to, std::optional(OuterStep{2}));
  run.mesh.roll_back(OuterStep{2});
  run.mesh.start(2);
  run.mesh.start(3);
  run.wait(5);
  QVERIFY(run.mesh.hub().committed() > OuterStep{2});
  QVERIFY(!run.mesh.hub().standstill().has_value());
  QCOMPARE(QString::fromStdString(run.mesh.violation()), QString());
}

void CoordinatorSafeTest::a_store_that_lacks_what_was_said_to_be_there_is_told_and_leaves_a_way_back() {
  Trained run(uploading_run(1));
  run.upload(run.state(2));
  const HeldState lost = run.committed();
  run.upload(lost, /*is_true=*/false);
  run.lose_all();
  run.mesh.start(1);
  run.wait(61);
  QVERIFY(run.mesh.hub().standstill().has_value());
  const std::string text = run.mesh.hub().standstill()->text;
  QVERIFY2(text.find("object store") != std::string::npos, text.c_str());
  QCOMPARE(run.mesh.hub().standstill()->back_to, std::optional(OuterStep{2}));
  QCOMPARE(run.mesh.count<RolledBack>(), 0);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::CoordinatorSafeTest)
#include "coordinator_safe_test.moc"
