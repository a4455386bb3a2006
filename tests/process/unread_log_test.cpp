// A hub whose log nobody reads, as on a terminal that was stopped with Ctrl-S, leads its run on.
#include <fcntl.h>
#include <sys/ioctl.h>

#include <QtTest/QTest>

#include "net/base/unique_fd.h"
#include "tests/process/whole_run.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr int kPipeBytes = 4096;  // the least there is: some six rounds' lines
constexpr std::uint32_t kRounds = 40;

}  // namespace

class UnreadLogTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_hub_whose_log_nobody_reads_leads_its_run_on() {
    RunConfig config = small_run(/*min_islands=*/1);
    config.inner_steps = 5;
    WholeRun run(config, 1);
    run.start_hub();
    const std::string output = "/proc/" + std::to_string(run.scene().hub_pid()) + "/fd/1";
    const UniqueFd pipe(::open(output.c_str(), O_WRONLY | O_CLOEXEC));
    QVERIFY(::fcntl(pipe.get(), F_SETPIPE_SZ, kPipeBytes) == kPipeBytes);
    run.start_island(0);

    HubState last;
    const bool goes_on = run.wait_for_step(kRounds, last);

    QVERIFY2(goes_on, std::to_string(last.outer_step).c_str());
    int unread = 0;
    QVERIFY(::ioctl(pipe.get(), FIONREAD, &unread) == 0);
    QVERIFY2(unread > kPipeBytes / 2, std::to_string(unread).c_str());  // no more went in
  }
};

QTEST_GUILESS_MAIN(UnreadLogTest)
#include "unread_log_test.moc"
