// A program whose output nobody reads, as on a terminal that was stopped with Ctrl-S: a hub leads its run on, and an
// island in the foreground trains on and ends when it is told to.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <QtTest/QTest>

#include "net/base/unique_fd.h"
#include "tests/process/whole_run.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr int kPipeBytes = 4096;  // the least there is: some six rounds' lines
constexpr std::uint32_t kRounds = 40;
constexpr std::uint32_t kRoundsOfLines = 200;  // a short line each
constexpr int kEndMilliseconds = 60'000;       // a hang, not a slow machine

RunConfig config_of_short_rounds() {
  RunConfig config = small_run(/*min_islands=*/1);
  config.inner_steps = 5;
  return config;
}

int unread_bytes(int pipe) {
  int unread = -1;
  return ::ioctl(pipe, FIONREAD, &unread) == 0 ? unread : -1;
}

}  // namespace

class UnreadLogTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_hub_whose_log_nobody_reads_leads_its_run_on() {
    WholeRun run(config_of_short_rounds(), 1);
    run.start_hub();
    const std::string output = "/proc/" + std::to_string(run.scene().hub_pid()) + "/fd/1";
    const UniqueFd pipe(::open(output.c_str(), O_WRONLY | O_CLOEXEC));
    QVERIFY(::fcntl(pipe.get(), F_SETPIPE_SZ, kPipeBytes) == kPipeBytes);
    run.start_island(0);

    HubState last;
    const bool goes_on = run.wait_for_step(kRounds, last);

    QVERIFY2(goes_on, std::to_string(last.outer_step).c_str());
    const int unread = unread_bytes(pipe.get());
    QVERIFY2(unread > kPipeBytes / 2, std::to_string(unread).c_str());  // no more went in
  }

  void a_join_whose_lines_nobody_reads_trains_on_and_ends_when_it_is_told_to() {
    WholeRun run(config_of_short_rounds(), 1);
    run.start_hub();
    int ends[2];
    QCOMPARE(::pipe2(ends, O_CLOEXEC), 0);
    const UniqueFd reading(ends[0]), writing(ends[1]);
    QVERIFY(::fcntl(writing.get(), F_SETPIPE_SZ, kPipeBytes) == kPipeBytes);
    const auto join = run.scene().start({"join", "--home", run.homes()[0].directory.string()},
                                        [&] { ::dup2(writing.get(), STDOUT_FILENO); });

    HubState last;
    const bool goes_on = run.wait_for_step(kRoundsOfLines, last);
    const int unread = unread_bytes(reading.get());
    join->terminate();
    const bool ends_when_told = join->waitForFinished(kEndMilliseconds);

    QVERIFY2(goes_on, std::to_string(last.outer_step).c_str());
    QVERIFY2(unread > kPipeBytes / 2, std::to_string(unread).c_str());
    QVERIFY(ends_when_told);
    QCOMPARE(join->exitCode(), 0);
  }
};

QTEST_GUILESS_MAIN(UnreadLogTest)
#include "unread_log_test.moc"
