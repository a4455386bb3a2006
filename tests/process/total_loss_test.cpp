// `kill -9` of the hub and of every island at once, at random instants: the run goes on from what the hub said is safe,
// or says what is missing and by which command that is settled. And from the last committed round where no outer state
// was written for many rounds: the round log alone leads there.
#include <QtCore/QProcess>
#include <QtCore/QThread>
#include <QtTest/QTest>
#include <algorithm>
#include <optional>
#include <random>

#include "net/base/deadline.h"
#include "net/base/file.h"
#include "net/control/hub_state.h"
#include "net/disk/checkpoint_directory.h"
#include "net/disk/round_log.h"
#include "net/disk/snapshot.h"
#include "net/hub/hub_store.h"
#include "tests/process/whole_run.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr std::uint32_t kIslands = 3;

// Per kind of round; ATOLL_TOTAL_LOSSES asks for another number.
int losses() {
  const int asked = qEnvironmentVariableIntValue("ATOLL_TOTAL_LOSSES");
  return asked > 0 ? asked : 3;
}

}  // namespace

class TotalLossTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_run_goes_on_from_what_is_safe_or_says_what_is_missing_data();
  void the_run_goes_on_from_what_is_safe_or_says_what_is_missing();
  void no_committed_round_is_lost_with_states_that_were_not_written_data();
  void no_committed_round_is_lost_with_states_that_were_not_written();
  void no_committed_round_is_lost_before_any_state_was_written();
  void a_run_that_lives_goes_back_and_on_data();
  void a_run_that_lives_goes_back_and_on();

 private:
  void make_run(std::uint32_t inner_steps, std::uint32_t fragments = 1, std::uint32_t keep_states = 3);
  bool wait_for_rounds_of_all(std::size_t count) const;

  std::unique_ptr<WholeRun> run_;
};

void TotalLossTest::make_run(std::uint32_t inner_steps, std::uint32_t fragments, std::uint32_t keep_states) {
  RunConfig run = small_run(kIslands);
  run.inner_steps = inner_steps;
  run.fragments = fragments;
  run.keep_states = keep_states;
  run_.reset();
  run_ = std::make_unique<WholeRun>(run, kIslands);
}

void TotalLossTest::the_run_goes_on_from_what_is_safe_or_says_what_is_missing_data() {
  QTest::addColumn<std::uint32_t>("inner_steps");
  QTest::addColumn<std::uint32_t>("fragments");
  QTest::newRow("short rounds") << 50u << 1u;
  QTest::newRow("long rounds") << 200u << 1u;
  QTest::newRow("rounds that overlap") << 50u << 2u;
}

void TotalLossTest::the_run_goes_on_from_what_is_safe_or_says_what_is_missing() {
  QFETCH(const std::uint32_t, inner_steps);
  QFETCH(const std::uint32_t, fragments);
  make_run(inner_steps, fragments);
  std::mt19937 random(inner_steps);
  const auto between = [&](double low, double high) { return std::uniform_real_distribution<>(low, high)(random); };
  int settled_by_command = 0;
  double round_seconds = 1;
  HubState state;
  run_->start_all();
  QVERIFY(run_->wait_for_step(1, state));
  for (int loss = 0; loss < losses(); ++loss) {
    // Given a run at a moment anywhere in a round, or while it still comes back from the last loss,
    const bool again_at_once = between(0, 1) < 0.25;
    state = run_->state();
    if (!state.rounds.empty()) round_seconds = state.rounds.back().seconds;
    QThread::usleep(static_cast<unsigned long>(between(0, 2 * round_seconds) * 1e6));
    const HubState before = run_->state();

    // when everybody dies and is started again,
    run_->kill_all();
    run_->start_all();
    if (again_at_once) {
      QThread::usleep(static_cast<unsigned long>(between(0, 3) * 1e6));
      run_->kill_all();
      run_->start_all();
    }

    // then nothing that was committed is forgotten, and the run goes on from there,
    QVERIFY(run_->state().outer_step >= before.outer_step);
    if (!run_->wait_for_step(before.outer_step + 2, state)) {
      // or says what is missing, and the command that it names settles that without undoing what was safe.
      QVERIFY2(state.standstill, qPrintable(QString("silence at loss %1").arg(loss)));
      const std::string text = state.standstill->text;
      qInfo("loss %d: %s", loss, text.c_str());
      const std::optional<std::uint32_t> back = run_->go_back_as_told(state);
      QVERIFY2(back && *back >= before.safe_outer_step.value_or(0), text.c_str());
      ++settled_by_command;
      QVERIFY2(run_->wait_for_step(*back + 2, state), state.standstill ? state.standstill->text.c_str() : "silence");
    }
  }
  qInfo("%d losses of everything, %d settled by a command; rounds of %.2f s, %u committed", losses(),
        settled_by_command, round_seconds, state.outer_step);
  run_->kill_all();
}

// The last rounds, so many, were everybody's: each island holds all that was committed since.
bool TotalLossTest::wait_for_rounds_of_all(std::size_t count) const {
  const std::uint32_t since = run_->state().outer_step;
  const Deadline deadline = Deadline::after(kRunLimit);
  const auto is_of_all = [&](const HubState::Round& round) {
    return round.round >= since && round.members == kIslands;
  };
  while (!deadline.expired()) {
    const HubState now = run_->state();
    const auto other = std::find_if_not(now.rounds.rbegin(), now.rounds.rend(), is_of_all);
    if (static_cast<std::size_t>(other - now.rounds.rbegin()) >= count) return true;
    QThread::msleep(100);
  }
  return false;
}

// As if the newest states had taken too long to be written: what is left is so many outer steps behind.
void forget_states(const IslandHome& home, OuterStep committed, std::uint32_t behind) {
  std::size_t left = 0;
  for (const auto& file : require(outer_state_files(home.checkpoint()))) {
    const HeldState state = require(peek_snapshot(file)).state;
    const bool is_old = state.outer_step.value + behind <= committed.value;
    is_old ? void(++left) : void(std::filesystem::remove_all(file));
  }
  if (left == 0) qFatal("an island keeps no state that is %u rounds old", behind);
}

void forget_records(const IslandHome& home) {
  for (const auto& entry : std::filesystem::directory_iterator(home.checkpoint() / kRoundsDirectory)) {
    if (entry.path().extension() == ".record") std::filesystem::remove(entry.path());
  }
}

void TotalLossTest::no_committed_round_is_lost_with_states_that_were_not_written_data() {
  QTest::addColumn<std::uint32_t>("fragments");
  QTest::addColumn<bool>("one_lacks_an_average");
  QTest::addColumn<bool>("without_records");  // the hub's are what leads on
  QTest::newRow("the whole model") << 1u << false << false;
  QTest::newRow("rounds that overlap") << 2u << false << false;
  QTest::newRow("one island lacks an average") << 1u << true << false;
  QTest::newRow("the hub's records alone") << 1u << false << true;
  QTest::newRow("the hub's records alone, rounds that overlap") << 2u << false << true;
}

void TotalLossTest::no_committed_round_is_lost_with_states_that_were_not_written() {
  QFETCH(const std::uint32_t, fragments);
  QFETCH(const bool, one_lacks_an_average);
  QFETCH(const bool, without_records);
  constexpr std::uint32_t kBehind = 5;
  make_run(/*inner_steps=*/20, fragments, /*keep_states=*/8);
  std::mt19937 random(fragments + (one_lacks_an_average ? 10 : 0));
  HubState state;
  run_->start_all();
  for (int loss = 0; loss < losses(); ++loss) {
    // Given a run at a moment anywhere in a round,
    QVERIFY(wait_for_rounds_of_all(kBehind + 3));
    QThread::usleep(std::uniform_int_distribution<unsigned long>(0, 1'000'000)(random));

    // when everybody dies, has not written a state for rounds, and is started again,
    run_->kill_all();
    const auto memory = require(require(HubStore::open(run_->hub_home().database()))->memory());
    const OuterStep committed = memory.committed;
    for (const IslandHome& home : run_->homes()) forget_states(home, committed, kBehind);
    if (one_lacks_an_average) {
      const std::string name = "round." + std::to_string(committed.value - 3) + ".average";
      QVERIFY(std::filesystem::remove(run_->homes()[1].checkpoint() / kRoundsDirectory / name));
    }
    for (const IslandHome& home : run_->homes()) {
      if (without_records) forget_records(home);
      std::filesystem::resize_file(home.trainer_log(), 0);
    }
    run_->start_all();

    // then it goes on from the last committed round by itself, with the state that this made,
    QVERIFY2(run_->wait_for_step(committed.value + 2, state),
             state.standstill ? state.standstill->text.c_str() : "silence");
    QVERIFY(run_->hash_of(committed).has_value());
    if (memory.agreed_hash) QCOMPARE(*run_->hash_of(committed), *memory.agreed_hash);
    // which everybody made of its own averages.
    for (const IslandHome& home : run_->homes()) {
      const std::string log = require(read_file(home.trainer_log()));
      QVERIFY2(log.find(without_records ? "average=kept" : "round_log round=") != std::string::npos, log.c_str());
    }
  }
  qInfo("%d losses of everything, %u rounds committed", losses(), state.outer_step);
  run_->kill_all();
}

// As if the first outer state had taken longer to be written than the first rounds took.
void TotalLossTest::no_committed_round_is_lost_before_any_state_was_written() {
  make_run(/*inner_steps=*/200, /*fragments=*/1, /*keep_states=*/8);
  HubState state;
  run_->start_all();
  QVERIFY(run_->wait_for_step(2, state));
  run_->kill_all();
  const auto memory = require(require(HubStore::open(run_->hub_home().database()))->memory());
  for (const IslandHome& home : run_->homes()) {
    for (const auto& file : require(outer_state_files(home.checkpoint()))) std::filesystem::remove_all(file);
    const LoggedRounds rounds = RoundLog(home.checkpoint()).rounds();
    QVERIFY(!rounds.empty() && rounds.begin()->first == OuterStep{0});
  }

  run_->start_all();

  QVERIFY2(run_->wait_for_step(memory.committed.value + 2, state),
           state.standstill ? state.standstill->text.c_str() : "silence");
  QVERIFY(run_->hash_of(memory.committed).has_value());
  if (memory.agreed_hash) QCOMPARE(*run_->hash_of(memory.committed), *memory.agreed_hash);
  run_->kill_all();
}

void TotalLossTest::a_run_that_lives_goes_back_and_on_data() {
  QTest::addColumn<std::uint32_t>("steps");
  QTest::newRow("by one") << 1u;
  QTest::newRow("by two, then everybody dies") << 2u;
  QTest::newRow("to its beginning") << 1000u;
}

void TotalLossTest::a_run_that_lives_goes_back_and_on() {
  QFETCH(const std::uint32_t, steps);
  make_run(/*inner_steps=*/20);
  HubState state;
  run_->start_all();
  QVERIFY(run_->wait_for_step(6, state));
  // A run that goes on before the command comes may keep that outer step no more: it says what it keeps. Not every
  // time.
  bool went_back = false;
  for (int attempt = 0; attempt < 3 && !went_back; ++attempt) {
    const std::uint32_t to = state.outer_step > steps ? state.outer_step - steps : 0;
    const ProgramOutcome back = run_->scene().run(
        {"hub", "rollback", "--home", run_->hub_home().directory.string(), "--to", std::to_string(to)});
    QVERIFY2(back.exit_code == 0, back.err.c_str());
    went_back = run_->wait_for_step(to + 3, state);
    if (went_back) continue;
    const std::optional<std::uint32_t> kept = run_->go_back_as_told(state);
    QVERIFY2(kept, state.standstill ? state.standstill->text.c_str() : "silence");
    QVERIFY2(run_->wait_for_step(*kept + 6, state), state.standstill ? state.standstill->text.c_str() : "silence");
  }
  QVERIFY(went_back);
  const auto all_train = [](const HubState& now) {
    return now.rounds.back().members == kIslands && now.rounds.back().outer_hashes_equal == true;
  };
  for (int i = 0; i < 100 && !all_train(state); ++i) {
    QThread::msleep(100);
    state = run_->state();
  }
  QVERIFY(all_train(state));
  if (steps == 2) {
    const std::uint32_t before = run_->state().outer_step;
    run_->kill_all();
    run_->start_all();
    QVERIFY2(run_->wait_for_step(before + 2, state), state.standstill ? state.standstill->text.c_str() : "silence");
  }
  for (const auto& island : run_->trainers()) QCOMPARE(island->state(), QProcess::Running);
  run_->kill_all();
}

QTEST_GUILESS_MAIN(TotalLossTest)
#include "total_loss_test.moc"
