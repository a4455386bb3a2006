// `kill -9` of the hub and of every island at once, at random instants: the run goes on from what the hub said is safe,
// or says what is missing and by which command that is settled.
#include <QtCore/QProcess>
#include <QtCore/QThread>
#include <QtTest/QTest>
#include <algorithm>
#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "net/base/deadline.h"
#include "net/control/hub_state.h"
#include "net/hub/hub.h"
#include "tests/process/agent_service.h"
#include "tests/process/run_parts.h"
#include "tests/process/scene.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr std::uint32_t kIslands = 3;
constexpr std::chrono::seconds kLimit{120};    // for anything; a hang, not a slow machine
constexpr std::chrono::seconds kLostAfter{5};  // then the hub says what is missing

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
  void a_run_that_lives_goes_back_and_on_data();
  void a_run_that_lives_goes_back_and_on();

 private:
  void make_run(std::uint32_t inner_steps, std::uint32_t fragments = 1);
  void start_all();
  void kill_all();
  HubState hub_state() const;
  bool wait_for_step(std::uint32_t step, HubState& last);
  std::optional<std::uint32_t> go_back_as_told(const HubState& state);

  std::unique_ptr<Scene> scene_;
  std::vector<IslandHome> homes_;
  std::vector<std::unique_ptr<QProcess>> islands_;
};

void TotalLossTest::make_run(std::uint32_t inner_steps, std::uint32_t fragments) {
  islands_.clear();
  homes_.clear();
  scene_ = std::make_unique<Scene>();
  make_dataset(scene_->path("text.txt"), scene_->path("data"));
  RunConfig run = small_run(kIslands);
  run.name = "test run";
  run.inner_steps = inner_steps;
  run.fragments = fragments;
  run.lost_after = kLostAfter;
  run = require(
      hub_init({.directory = scene_->path("hub"), .dataset_directory = scene_->path("data"), .run = std::move(run)}));
  scene_->serve_hub();  // for the invites
  for (std::uint32_t i = 0; i < kIslands; ++i) {
    const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
    homes_.push_back(make_island_home({.directory = scene_->path("islands"),
                                       .dataset = scene_->path("data"),
                                       .invite = require(decode_invite(scene_->invite(), now)),
                                       .display_name = "island " + std::to_string(i),
                                       .bind = {"127.0.0.1", 0}},
                                      run));
  }
  scene_->kill_hub();
}

void TotalLossTest::start_all() {
  scene_->serve_hub();
  for (const IslandHome& home : homes_) islands_.push_back(start_trainer(home));
}

void TotalLossTest::kill_all() {
  ::kill(static_cast<pid_t>(scene_->hub_pid()), SIGKILL);
  for (const auto& island : islands_) ::kill(static_cast<pid_t>(island->processId()), SIGKILL);
  scene_->kill_hub();
  for (const auto& island : islands_) island->waitForFinished();
  islands_.clear();
}

HubState TotalLossTest::hub_state() const {
  ProgramOutcome outcome;
  const bool answered = wait_for([&] {
    outcome = scene_->run({"hub", "status", "--home", scene_->path("hub").string(), "--json"});
    return outcome.exit_code == 0;
  });
  if (!answered) qFatal("hub status: %s", outcome.err.c_str());
  return require(HubState::from_json(nlohmann::json::parse(outcome.out)));
}

// False when the run stands still though everybody is there, or when nothing happens for kLimit.
bool TotalLossTest::wait_for_step(std::uint32_t step, HubState& last) {
  const Deadline deadline = Deadline::after(kLimit);
  for (;;) {
    last = hub_state();
    if (last.outer_step >= step) return true;
    const auto here = std::ranges::count_if(last.islands, [](const HubState::Island& island) {
      return island.state == HubIslandState::kTraining || island.state == HubIslandState::kRecovering;
    });
    if ((last.standstill && here == kIslands) || deadline.expired()) return false;
    QThread::msleep(100);
  }
}

// Gives the command that a run which stands still names; to which outer step it went back. Nothing: no such command was
// named, or it did not help.
std::optional<std::uint32_t> TotalLossTest::go_back_as_told(const HubState& state) {
  if (!state.standstill || !state.standstill->back_to) return std::nullopt;
  const std::string to = std::to_string(*state.standstill->back_to);
  if (state.standstill->text.find("`atoll hub rollback --to " + to + "`") == std::string::npos) return std::nullopt;
  const ProgramOutcome back = scene_->run({"hub", "rollback", "--home", scene_->path("hub").string(), "--to", to});
  if (back.exit_code != 0) return std::nullopt;
  return state.standstill->back_to;
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
  start_all();
  QVERIFY(wait_for_step(1, state));
  for (int loss = 0; loss < losses(); ++loss) {
    // Given a run at a moment anywhere in a round, or while it still comes back from the last loss,
    const bool again_at_once = between(0, 1) < 0.25;
    state = hub_state();
    if (!state.rounds.empty()) round_seconds = state.rounds.back().seconds;
    QThread::usleep(static_cast<unsigned long>(between(0, 2 * round_seconds) * 1e6));
    const HubState before = hub_state();

    // when everybody dies and is started again,
    kill_all();
    start_all();
    if (again_at_once) {
      QThread::usleep(static_cast<unsigned long>(between(0, 3) * 1e6));
      kill_all();
      start_all();
    }

    // then nothing that was committed is forgotten, and the run goes on from there,
    QVERIFY(hub_state().outer_step >= before.outer_step);
    if (!wait_for_step(before.outer_step + 2, state)) {
      // or says what is missing, and the command that it names settles that without undoing what was safe.
      QVERIFY2(state.standstill, qPrintable(QString("silence at loss %1").arg(loss)));
      const std::string text = state.standstill->text;
      qInfo("loss %d: %s", loss, text.c_str());
      const std::optional<std::uint32_t> back = go_back_as_told(state);
      QVERIFY2(back && *back >= before.safe_outer_step.value_or(0), text.c_str());
      ++settled_by_command;
      QVERIFY2(wait_for_step(*back + 2, state), state.standstill ? state.standstill->text.c_str() : "silence");
    }
  }
  qInfo("%d losses of everything, %d settled by a command; rounds of %.2f s, %u committed", losses(),
        settled_by_command, round_seconds, state.outer_step);
  kill_all();
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
  start_all();
  QVERIFY(wait_for_step(6, state));
  // A run that goes on before the command comes may keep that outer step no more: it says what it keeps. Not every
  // time.
  bool went_back = false;
  for (int attempt = 0; attempt < 3 && !went_back; ++attempt) {
    const std::uint32_t to = state.outer_step > steps ? state.outer_step - steps : 0;
    const ProgramOutcome back =
        scene_->run({"hub", "rollback", "--home", scene_->path("hub").string(), "--to", std::to_string(to)});
    QVERIFY2(back.exit_code == 0, back.err.c_str());
    went_back = wait_for_step(to + 3, state);
    if (went_back) continue;
    const std::optional<std::uint32_t> kept = go_back_as_told(state);
    QVERIFY2(kept, state.standstill ? state.standstill->text.c_str() : "silence");
    QVERIFY2(wait_for_step(*kept + 6, state), state.standstill ? state.standstill->text.c_str() : "silence");
  }
  QVERIFY(went_back);
  const auto all_train = [](const HubState& now) {
    return now.rounds.back().members == kIslands && now.rounds.back().outer_hashes_equal == true;
  };
  for (int i = 0; i < 100 && !all_train(state); ++i) {
    QThread::msleep(100);
    state = hub_state();
  }
  QVERIFY(all_train(state));
  if (steps == 2) {
    const std::uint32_t before = hub_state().outer_step;
    kill_all();
    start_all();
    QVERIFY2(wait_for_step(before + 2, state), state.standstill ? state.standstill->text.c_str() : "silence");
  }
  for (const auto& island : islands_) QCOMPARE(island->state(), QProcess::Running);
  kill_all();
}

QTEST_GUILESS_MAIN(TotalLossTest)
#include "total_loss_test.moc"
