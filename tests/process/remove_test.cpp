// An island that the operator removes while it trains: it ends and says so, the others go on.
#include <QtCore/QProcess>
#include <QtTest/QTest>
#include <algorithm>

#include "net/base/exit_code.h"
#include "net/base/file.h"
#include "tests/process/local_run.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr std::uint32_t kIslands = 3;
constexpr std::chrono::seconds kLimit{180};  // for anything; a hang, not a slow machine
constexpr int kLimitMilliseconds = 180'000;

RunConfig run_config() {
  RunConfig run = small_run(kIslands - 1);
  run.sequences_per_step = 4;
  return run;
}

}  // namespace

class RemoveTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_removed_island_says_so_and_the_others_go_on() {
    LocalRun run(run_config());
    std::vector<std::unique_ptr<QProcess>> islands;
    for (std::uint32_t i = 0; i < kIslands; ++i) islands.push_back(run.start_island("island " + std::to_string(i)));
    const auto all_take_part = [](const HubState& state) {
      return !state.rounds.empty() && state.rounds.back().members == kIslands;
    };
    QVERIFY(run.wait_until(all_take_part, kLimit));
    const HubState before = run.state();
    const auto doomed = std::find_if(before.islands.begin(), before.islands.end(),
                                     [](const HubState::Island& island) { return island.name == "island 1"; });
    QVERIFY(doomed != before.islands.end());

    run.remove(doomed->id);

    QVERIFY(islands[1]->waitForFinished(kLimitMilliseconds));
    QCOMPARE(islands[1]->exitCode(), static_cast<int>(kExitDenied));
    const auto log = read_file(run.directory() / "islands" / doomed->id / "trainer.log");
    QVERIFY(log.ok());
    QVERIFY2(log->find("removed from the run by its operator") != std::string::npos, log->c_str());
    const std::uint32_t then = run.state().outer_step;
    QVERIFY(run.wait_until([&](const HubState& s) { return s.outer_step >= then + 3; }, kLimit));
    QCOMPARE(run.state().rounds.back().members, kIslands - 1);
    QCOMPARE(islands[0]->state(), QProcess::Running);
    QCOMPARE(islands[2]->state(), QProcess::Running);

    // It does not come back.
    islands[1]->start();
    QVERIFY(islands[1]->waitForFinished(kLimitMilliseconds));
    QCOMPARE(islands[1]->exitCode(), static_cast<int>(kExitDenied));
  }
};

QTEST_GUILESS_MAIN(RemoveTest)
#include "remove_test.moc"
