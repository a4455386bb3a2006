// Disks that are gone, of one island, of most, of all, of the hub: what the run goes on from, what it waits for, and
// what its organiser is told to do. No round that is left on any disk is given up without a command of the organiser's.
#include <QtCore/QThread>
#include <QtTest/QTest>
#include <algorithm>

#include "net/base/file.h"
#include "net/disk/round_log.h"
#include "net/disk/snapshot.h"
#include "net/hub/hub_store.h"
#include "tests/process/whole_run.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr std::uint32_t kIslands = 3;
constexpr std::uint32_t kRounds = 6;  // at least, before anything is wiped

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void wipe(const IslandHome& home) { std::filesystem::remove_all(home.checkpoint()); }

// Outer states that its disk leads to, newest first.
std::optional<OuterStep> newest_snapshot(const IslandHome& home, OuterStep at_most) {
  std::optional<OuterStep> newest;
  for (const auto& file : require(outer_state_files(home.checkpoint()))) {
    const OuterStep step = require(peek_snapshot(file)).state.outer_step;
    if (step <= at_most) newest = std::max(newest, std::optional(step));
  }
  return newest;
}

// As a copy of its disk from long ago: no state newer than that one, and no round since.
void keep_only_up_to(const IslandHome& home, OuterStep step) {
  for (const auto& file : require(outer_state_files(home.checkpoint()))) {
    if (require(peek_snapshot(file)).state.outer_step > step) std::filesystem::remove_all(file);
  }
  for (const auto& file : RoundLog(home.checkpoint()).files_from(step)) std::filesystem::remove(file);
  std::filesystem::remove_all(home.checkpoint() / kWrittenSnapshot);
  std::filesystem::remove(home.checkpoint() / kKeptAverageFile);
}

}  // namespace

class WipedDisksTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init();
  void one_of_three_fetches_what_the_others_hold();
  void two_of_three_go_on_from_the_one_that_is_left_and_nobody_calls_that_safe();
  void while_the_only_holder_is_away_the_run_waits_and_names_it();
  void all_but_an_old_state_goes_back_by_the_command_that_is_named_and_not_before();
  void all_of_them_is_said_to_be_all_and_begins_again_by_command();
  void a_hub_without_its_database_does_not_serve_and_says_what_to_do();
  void a_hub_of_an_old_backup_goes_on_from_what_the_islands_know_data();
  void a_hub_of_an_old_backup_goes_on_from_what_the_islands_know();

 private:
  void start(const std::vector<std::size_t>& islands);
  std::string hub_status();
  bool wait_for(const std::function<bool(const HubState&)>& condition);
  bool trains_with_all(std::uint32_t step);

  std::unique_ptr<WholeRun> run_;
  OuterStep committed_;  // when everybody died
  std::string hash_;     // of that state
  HubState state_;       // as it was last looked at
};

// Given a run of three with some rounds behind it, all of which are dead.
void WipedDisksTest::init() {
  RunConfig config = small_run(/*min_islands=*/2);
  config.inner_steps = 20;
  config.keep_states = 8;
  config.heartbeat = std::chrono::milliseconds(500);
  config.dead_after = std::chrono::seconds(2);  // a restored hub waits ten times as long for its islands
  run_.reset();
  run_ = std::make_unique<WholeRun>(config, kIslands);
  run_->start_all();
  QVERIFY(trains_with_all(kRounds));
  run_->kill_all();
  committed_ = require(require(HubStore::open(run_->hub_home().database()))->memory()).committed;
  hash_ = run_->hash_of(committed_).value_or("");
}

void WipedDisksTest::start(const std::vector<std::size_t>& islands) {
  run_->start_hub();
  for (const std::size_t island : islands) run_->start_island(island);
}

std::string WipedDisksTest::hub_status() {
  return run_->scene().run({"hub", "status", "--home", run_->hub_home().directory.string()}).out;
}

bool WipedDisksTest::wait_for(const std::function<bool(const HubState&)>& condition) {
  return test::wait_for([&] { return condition(state_ = run_->state()); }, kRunLimit);
}

// A round of all three, at that outer step or after it, after which all hold the same state.
bool WipedDisksTest::trains_with_all(std::uint32_t step) {
  return wait_for([&](const HubState& now) {
    return now.outer_step >= step && std::ranges::any_of(now.rounds, [&](const HubState::Round& round) {
             return round.round + 1 >= step && round.members == kIslands && round.outer_hashes_equal == true;
           });
  });
}

void WipedDisksTest::one_of_three_fetches_what_the_others_hold() {
  wipe(run_->homes()[0]);

  start({0, 1, 2});

  QVERIFY(trains_with_all(committed_.value + 2));
  QVERIFY(!state_.standstill);
  if (!hash_.empty()) QCOMPARE(run_->hash_of(committed_).value_or(""), hash_);
}

void WipedDisksTest::two_of_three_go_on_from_the_one_that_is_left_and_nobody_calls_that_safe() {
  for (const std::size_t island : {0, 1}) wipe(run_->homes()[island]);

  start({2});
  QVERIFY(wait_for([](const HubState& now) { return now.islands.size() == 1 && now.disks_with_committed == 1u; }));

  QVERIFY(!state_.safe_outer_step);  // the run asks for two copies
  const std::string said = hub_status();
  QVERIFY2(has(said, "the state after round " + std::to_string(committed_.value) + " is on the disk of one island"),
           said.c_str());
  for (const std::size_t island : {0, 1}) run_->start_island(island);
  QVERIFY(trains_with_all(committed_.value + 2));
  QVERIFY(wait_for([&](const HubState& now) { return now.safe_outer_step >= committed_.value; }));
  if (!hash_.empty()) QCOMPARE(run_->hash_of(committed_).value_or(""), hash_);
}

void WipedDisksTest::while_the_only_holder_is_away_the_run_waits_and_names_it() {
  for (const std::size_t island : {0, 1}) wipe(run_->homes()[island]);
  const std::string holder = run_->homes()[2].directory.filename().string();

  start({0, 1});

  QVERIFY(wait_for([](const HubState& now) { return now.standstill.has_value(); }));
  const std::string text = state_.standstill->text;
  QVERIFY2(has(text, holder), text.c_str());
  QVERIFY2(has(text, "`atoll hub rollback --to "), text.c_str());
  QVERIFY(state_.standstill->seconds >= static_cast<double>(kRunLostAfter.count()));
  QVERIFY2(has(hub_status(), text), hub_status().c_str());
  QCOMPARE(state_.outer_step, committed_.value);
  run_->start_island(2);
  QVERIFY(trains_with_all(committed_.value + 2));
  QVERIFY(!state_.standstill);
  if (!hash_.empty()) QCOMPARE(run_->hash_of(committed_).value_or(""), hash_);
}

void WipedDisksTest::all_but_an_old_state_goes_back_by_the_command_that_is_named_and_not_before() {
  const auto& homes = run_->homes();
  const auto old = newest_snapshot(homes[0], OuterStep{committed_.value - 3});
  QVERIFY(old);
  const std::string hash_of_old = run_->hash_of(*old).value_or("");
  QVERIFY(!hash_of_old.empty());
  keep_only_up_to(homes[0], *old);
  wipe(homes[1]);

  start({0, 1});  // the third is away, with a newer state
  QVERIFY(wait_for([](const HubState& now) { return now.standstill.has_value(); }));

  QCOMPARE(state_.outer_step, committed_.value);
  const std::string text = state_.standstill->text;
  QVERIFY2(state_.standstill->back_to == old->value, text.c_str());
  QCOMPARE(run_->go_back_as_told(state_), std::optional(old->value));
  QVERIFY(wait_for([&](const HubState& now) { return now.outer_step >= old->value + 2; }));
  QCOMPARE(run_->hash_of(*old).value_or(""), hash_of_old);
  const auto after = run_->hash_of(OuterStep{old->value + 1});
  run_->start_island(2);
  QVERIFY(trains_with_all(state_.outer_step + 2));
  QCOMPARE(run_->hash_of(*old).value_or(""), hash_of_old);
  QCOMPARE(run_->hash_of(OuterStep{old->value + 1}), after);
}

void WipedDisksTest::all_of_them_is_said_to_be_all_and_begins_again_by_command() {
  for (const IslandHome& home : run_->homes()) wipe(home);

  start({0, 1, 2});

  QVERIFY(wait_for([](const HubState& now) { return now.standstill.has_value(); }));
  QCOMPARE(state_.outer_step, committed_.value);
  const std::string text = state_.standstill->text;
  QVERIFY2(has(text, "begins again"), text.c_str());
  QVERIFY2(has(text, "copy of an island's checkpoint directory"), text.c_str());
  QCOMPARE(run_->go_back_as_told(state_), std::optional(0u));
  QVERIFY(wait_for([&](const HubState& now) { return now.outer_step < committed_.value; }));
  QVERIFY(trains_with_all(2));
}

void WipedDisksTest::a_hub_without_its_database_does_not_serve_and_says_what_to_do() {
  for (const char* tail : {"", "-wal", "-shm"}) {
    std::filesystem::remove(run_->hub_home().database().string() + tail);
  }

  const ProgramOutcome outcome =
      run_->scene().run({"hub", "serve", "--home", run_->hub_home().directory.string(), "--listen", "127.0.0.1:0"});

  QVERIFY(outcome.exit_code != 0);
  QVERIFY2(has(outcome.err, "atoll hub restore"), outcome.err.c_str());
}

void WipedDisksTest::a_hub_of_an_old_backup_goes_on_from_what_the_islands_know_data() {
  QTest::addColumn<bool>("by_command");
  QTest::newRow("restored by command") << true;
  QTest::newRow("a copy of its directory") << false;
}

void WipedDisksTest::a_hub_of_an_old_backup_goes_on_from_what_the_islands_know() {
  QFETCH(const bool, by_command);
  const std::string hub = run_->hub_home().directory.string(), file = run_->scene().path("hub.tar").string();
  const std::string copy = run_->scene().path("copy").string();
  if (by_command) {
    const ProgramOutcome made = run_->scene().run({"hub", "backup", "--home", hub, file});
    QVERIFY2(made.exit_code == 0, made.err.c_str());
  } else {
    std::filesystem::remove(run_->hub_home().control_socket());
    std::filesystem::copy(hub, copy, std::filesystem::copy_options::recursive);
  }
  start({0, 1, 2});
  QVERIFY(trains_with_all(committed_.value + 5));
  run_->kill_all();
  const OuterStep newest = require(require(HubStore::open(run_->hub_home().database()))->memory()).committed;
  const std::optional<std::string> hash = run_->hash_of(newest);
  std::filesystem::remove_all(hub);

  if (by_command) {
    const ProgramOutcome made = run_->scene().run({"hub", "restore", "--home", hub, file});
    QVERIFY2(made.exit_code == 0, made.err.c_str());
  } else {
    std::filesystem::rename(copy, hub);
  }
  start({0, 1, 2});

  // The last round may be known to that hub alone which is gone.
  QVERIFY(wait_for([&](const HubState& now) { return now.outer_step + 1 >= newest.value; }));
  QVERIFY(trains_with_all(newest.value + 2));
  if (hash && state_.rounds.front().round > newest.value) QCOMPARE(run_->hash_of(newest), hash);
}

QTEST_GUILESS_MAIN(WipedDisksTest)
#include "wiped_disks_test.moc"
