// A thousand clients that flood, stall and babble at the control socket of an island that trains: its owner is answered
// all the while, the training goes on, and nothing of them stays.
#include <QtTest/QTest>
#include <fstream>

#include "net/base/open_files.h"
#include "tests/process/agent_service.h"
#include "tests/process/crowd.h"
#include "tests/process/local_run.h"
#include "tests/process/program.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr std::size_t kOfEachKind = 200;
constexpr int kQuestions = 10;
// What the server holds for all clients together is bounded by 16 MiB; the rest is what the allocator keeps.
#ifdef __SANITIZE_ADDRESS__
constexpr std::int64_t kMostGrowthKiB = 1024 * 1024;  // AddressSanitizer keeps what is freed
#else
constexpr std::int64_t kMostGrowthKiB = 64 * 1024;
#endif

std::size_t open_files(pid_t pid) {
  const std::filesystem::directory_iterator files("/proc/" + std::to_string(pid) + "/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

// VmRSS, VmHWM, ... of /proc/PID/status.
std::int64_t kibibytes(pid_t pid, const std::string& field) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field + ":")) return std::stoll(line.substr(field.size() + 1));
  }
  qFatal("/proc has no %s", field.c_str());
}

}  // namespace

class ControlAttackTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_crowd_of_bad_clients_keeps_nobody_from_anything();
};

void ControlAttackTest::a_crowd_of_bad_clients_keeps_nobody_from_anything() {
  raise_open_file_limit();  // for the crowd
  const LocalRun run(small_run(1));
  AgentService service(run.make_home("under attack"));
  QVERIFY(service.wait_for_training());
  const pid_t agent = service.pid(), trainer = service.trainer();
  const std::size_t files_before = open_files(agent);
  const std::int64_t memory_before = kibibytes(agent, "VmRSS");
  const std::string home = service.home().island.directory.string();
  {
    const Crowd crowd(service.home().socket, kOfEachKind);
    QVERIFY(wait_for([&] { return crowd.most_at_once() >= kOfEachKind * std::size(kBadClients) / 2; }));

    int answered_at_once = 0;
    for (int i = 0; i < kQuestions; ++i) {
      // Where this machine is busy with the crowd itself, it takes longer than `status` waits.
      int asked = 0;
      QVERIFY(wait_for([&] {
        ++asked;
        const auto status = start_atoll({"status", "--home", home}, QProcessEnvironment::systemEnvironment());
        return outcome_of(*status).exit_code == 0;
      }));
      if (asked == 1) ++answered_at_once;
    }
    qInfo("%d of %d questions answered at once", answered_at_once, kQuestions);
    const std::uint32_t outer_step = run.state().outer_step;
    QVERIFY(run.wait_until([&](const HubState& hub) { return hub.outer_step >= outer_step + 2; }, kAgentLimit));
    qInfo("%llu connections, %zu at once", static_cast<unsigned long long>(crowd.connections()), crowd.most_at_once());
  }

  QVERIFY(wait_for([&] { return open_files(agent) <= files_before; }));
  qInfo("agent: %lld KiB before, %lld after, %lld at most", static_cast<long long>(memory_before),
        static_cast<long long>(kibibytes(agent, "VmRSS")), static_cast<long long>(kibibytes(agent, "VmHWM")));
  QVERIFY(kibibytes(agent, "VmHWM") - memory_before < kMostGrowthKiB);
  QCOMPARE(service.pid(), agent);
  QCOMPARE(service.trainer(), trainer);
}

QTEST_GUILESS_MAIN(ControlAttackTest)
#include "control_attack_test.moc"
