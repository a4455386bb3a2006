// An island whose wall clock jumps forth and back by days while it trains with another: durations go by another clock,
// so nothing is taken for hung, and its records stay whole.
#include <QtCore/QProcess>
#include <QtTest/QTest>
#include <algorithm>
#include <cmath>
#include <fstream>

#include "tests/process/agent_service.h"
#include "tests/process/local_run.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr std::int64_t kDay = 24 * 3600;

RunConfig run_config() {
  RunConfig run = small_run(2);
  run.inner_steps = 40;  // rounds.list tells of 500 rounds: more than there are
  return run;
}

void set_clock(const std::filesystem::path& file, std::int64_t offset_seconds) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);  // in place: it is mapped
  stream.write(reinterpret_cast<const char*>(&offset_seconds), sizeof offset_seconds);
}

nlohmann::json rounds_of(const AgentService& service) {
  return require(service.call("rounds.list", {{"limit", 500}}))["rounds"];
}

}  // namespace

class ClockFaultTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_clock_that_jumps_ends_nothing_and_loses_no_round();
};

void ClockFaultTest::a_clock_that_jumps_ends_nothing_and_loses_no_round() {
  const LocalRun run(run_config());
  const auto peer = run.start_island("peer");
  const std::filesystem::path clock = run.directory() / "clock";
  std::ofstream(clock) << std::string(sizeof(std::int64_t), '\0');
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  environment.insert("LD_PRELOAD", ATOLL_JUMPING_CLOCK);
  environment.insert("JUMPING_CLOCK", QString::fromStdString(clock.string()));
  environment.insert("ASAN_OPTIONS", "verify_asan_link_order=0");
  AgentService service(run.make_home("jumping"), environment);
  QVERIFY(service.wait_for_training());
  QVERIFY(wait_for([&] { return !rounds_of(service).empty(); }));
  const pid_t agent = service.pid(), trainer = service.trainer();
  const auto first = rounds_of(service).back()["round"].get<std::uint32_t>();
  const double began = rounds_of(service).front()["began"].get<double>();

  for (const std::int64_t offset : {3 * kDay, -kDay, 2 * kDay, std::int64_t{0}}) {
    set_clock(clock, offset);

    QVERIFY(service.wait_for_rounds(3));
    QVERIFY(wait_for([&] {  // else no clock jumped
      return std::ranges::any_of(rounds_of(service), [&](const nlohmann::json& round) {
        return round["began"].is_number() && std::abs(round["began"].get<double>() - began - offset) < kDay / 2.0;
      });
    }));
  }

  QCOMPARE(service.pid(), agent);
  QCOMPARE(service.trainer(), trainer);
  QCOMPARE(service.state()["agent"]["restarts"].get<int>(), 0);
  const std::uint32_t committed = run.state().outer_step;
  QVERIFY(wait_for([&] { return rounds_of(service).front()["round"].get<std::uint32_t>() + 1 >= committed; }));
  const nlohmann::json rounds = rounds_of(service);
  QCOMPARE(rounds.back()["round"].get<std::uint32_t>(), first);
  QCOMPARE(rounds.size(), rounds.front()["round"].get<std::size_t>() - first + 1);
  for (const nlohmann::json& round : rounds) {
    if (round["round"].get<std::uint32_t>() + 1 < committed) QVERIFY2(round["accepted"] == true, round.dump().c_str());
  }
  QCOMPARE(service.end(), 0);
  peer->terminate();
  QVERIFY(peer->waitForFinished(120'000));
}

QTEST_GUILESS_MAIN(ClockFaultTest)
#include "clock_fault_test.moc"
