// Islands that die in the middle of a round: the others commit it without them, and newcomers hold the same bits.
#include <spdlog/spdlog.h>

#include <QtCore/QProcess>
#include <QtCore/QThread>
#include <QtTest/QTest>
#include <algorithm>
#include <csignal>
#include <random>

#include "tests/process/local_run.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr int kIslands = 4;
constexpr std::chrono::seconds kLimit{180};  // for anything; a hang, not a slow machine

RunConfig run_config(std::uint32_t fragments) {
  RunConfig run = small_run(kIslands);
  run.fragments = fragments;
  run.sequences_per_step = 4;
  return run;
}

std::size_t training(const HubState& state) {
  return static_cast<std::size_t>(
      std::count_if(state.islands.begin(), state.islands.end(),
                    [](const HubState::Island& i) { return i.state == HubIslandState::kTraining; }));
}

const HubState::Round* find_round(const HubState& state, std::uint32_t round) {
  const auto found =
      std::find_if(state.rounds.begin(), state.rounds.end(), [&](const auto& r) { return r.round == round; });
  return found == state.rounds.end() ? nullptr : &*found;
}

bool trained_together(const HubState& state, std::uint32_t since) {
  return std::any_of(state.rounds.begin(), state.rounds.end(), [&](const HubState::Round& round) {
    return round.round > since && round.members == kIslands && round.outer_hashes_equal == true;
  });
}

}  // namespace

class KillTest : public QObject {
  Q_OBJECT

  // Waits for the round to be committed and compared; its record.
  static HubState::Round committed(const LocalRun& run, std::uint32_t round) {
    const bool done = run.wait_until(
        [&](const HubState& state) {
          const auto* record = find_round(state, round);
          return record != nullptr && record->outer_hashes_equal.has_value();
        },
        kLimit);
    if (!done) qFatal("round %u was not committed and compared in time", round);
    return *find_round(run.state(), round);
  }

 private Q_SLOTS:
  // Its lines, some of each round, would hide the one that says what failed.
  void initTestCase() { spdlog::set_level(spdlog::level::warn); }

  void the_rest_commit_the_round_and_a_new_island_holds_the_same_bits_data() {
    QTest::addColumn<std::uint32_t>("fragments");
    QTest::addColumn<int>("kills");
    QTest::newRow("one round at a time") << 1u << 14;
    QTest::newRow("rounds that overlap") << 2u << 6;
  }
  void the_rest_commit_the_round_and_a_new_island_holds_the_same_bits() {
    QFETCH(const std::uint32_t, fragments);
    QFETCH(const int, kills);
    LocalRun run(run_config(fragments));
    std::vector<std::unique_ptr<QProcess>> islands;
    for (int i = 0; i < kIslands; ++i) islands.push_back(run.start_island("island " + std::to_string(i)));
    QVERIFY(run.wait_until([](const HubState& s) { return s.outer_step >= 2 && training(s) == kIslands; }, kLimit));

    std::mt19937 random(20);
    for (int kill = 0; kill < kills; ++kill) {
      // Given a round under way, at a moment anywhere in it,
      const HubState before = run.state();
      QVERIFY(
          run.wait_until([&](const HubState& s) { return s.outer_step > before.outer_step && s.round_open; }, kLimit));
      const double round_seconds = run.state().rounds.back().seconds;
      QThread::usleep(static_cast<unsigned long>(std::uniform_real_distribution<>(0, round_seconds * 1e6)(random)));
      const std::uint32_t open = run.state().outer_step;

      // when one of four islands is killed,
      QProcess& victim = *islands[random() % kIslands];
      ::kill(static_cast<pid_t>(victim.processId()), SIGKILL);
      QVERIFY(victim.waitForFinished());

      // then the others commit that round and the next, and hold the same outer state,
      for (const std::uint32_t round : {open, open + 1}) {
        const HubState::Round record = committed(run, round);
        QVERIFY2(record.outer_hashes_equal == true, qPrintable(QString("hashes of round %1 differ").arg(round)));
        QVERIFY2(record.members >= kIslands - 1,
                 qPrintable(QString("kill %1, round %2: %3 members").arg(kill).arg(round).arg(record.members)));
      }
      for (const auto& island : islands) {
        const bool ended = island->state() == QProcess::NotRunning;
        QVERIFY2(ended == (island.get() == &victim),
                 qPrintable(QString("kill %1, exit %2").arg(kill).arg(island->exitCode())));
      }

      // and a new island that joins takes part in a round whose hashes agree on all four.
      const auto slot = std::find_if(islands.begin(), islands.end(), [&](const auto& i) { return i.get() == &victim; });
      *slot = run.start_island("joiner " + std::to_string(kill));
      // In which one is not said: rounds are shorter than a process takes to start, and go on while it fetches.
      const std::uint32_t joined_at = run.state().outer_step;
      QVERIFY2(run.wait_until([&](const HubState& s) { return trained_together(s, joined_at); }, kLimit),
               qPrintable(QString("the joiner of kill %1 takes part in no round").arg(kill)));
    }

    for (const auto& island : islands) {
      island->terminate();
      QVERIFY(island->waitForFinished(60'000));
      QCOMPARE(island->exitCode(), 0);
    }
  }
};

QTEST_GUILESS_MAIN(KillTest)
#include "kill_test.moc"
