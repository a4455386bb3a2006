// The owner's rules with the real agent and the real trainer of a run: what pauses it is there for real, it is said,
// and no step is lost by it.
#include <QtCore/QProcess>
#include <QtTest/QTest>
#include <ctime>
#include <nlohmann/json.hpp>

#include "app/config/config.h"
#include "net/base/file.h"
#include "net/control/control_client.h"
#include "tests/process/agent_service.h"
#include "tests/process/local_run.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr std::uint64_t kSteps = 20;  // that are trained before something pauses it

// A round that is longer than this test.
RunConfig long_round() {
  RunConfig config = small_run(2);
  config.min_islands = 1;
  config.inner_steps = 200'000;
  return config;
}

// An hour that begins in two hours.
std::string later_hour() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  return QString("%1:00-%2:30")
      .arg((local.tm_hour + 2) % 24, 2, 10, QChar('0'))
      .arg((local.tm_hour + 2) % 24, 2, 10, QChar('0'))
      .toStdString();
}

bool trains_on(const nlohmann::json& now) { return now["inner_step"] >= kSteps && now["pid"] > 0; }

nlohmann::json pause_by(const nlohmann::json& now, const std::string& rule) {
  if (now["state"] != "paused" || now["agent"]["trainer_pid"] != 0) return {};
  for (const nlohmann::json& pause : now["agent"].value("paused_by", nlohmann::json::array())) {
    if (pause["rule"] == rule) return pause;
  }
  return {};
}

std::string status_of(const AgentService& service) {
  QProcess status;
  status.start(QString(ATOLL_BIN_DIR) + "/atoll",
               {"status", "--home", QString::fromStdString(service.home().island.directory.string())});
  if (!status.waitForFinished(60'000)) return "no answer";
  return status.readAllStandardOutput().simplified().toStdString();
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

class RulesRunTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void other_programs_pause_it_and_no_step_is_lost();
  void the_hours_pause_it_and_no_step_is_lost();
  void who_watches_a_joining_is_told();

 private:
  // Once nothing pauses it, more steps of the round are behind it than its trainer has taken.
  static void goes_on_where_it_was(AgentService& service, const LocalRun& run);
};

void RulesRunTest::goes_on_where_it_was(AgentService& service, const LocalRun& run) {
  QVERIFY(service.wait_until([](const nlohmann::json& now) { return now["pid"] > 0 && now["tokens"] > 0; }));
  const nlohmann::json now = service.state();
  const std::uint64_t tokens_a_step = std::uint64_t{run.config().sequences_per_step} * run.config().sequence_length;
  QCOMPARE(now["round"].get<std::uint32_t>(), 0u);
  QVERIFY(now["inner_step"].get<std::uint64_t>() >= now["tokens"].get<std::uint64_t>() / tokens_a_step + kSteps);
  QVERIFY(!now["agent"].contains("paused_by"));
  QCOMPARE(now["agent"]["restarts"].get<int>(), 0);
}

void RulesRunTest::other_programs_pause_it_and_no_step_is_lost() {
  const LocalRun run(long_round());
  AgentService service(run.make_home("beside others"));
  QVERIFY(service.wait_until(trains_on));
  QProcess busy;
  busy.start("sh", {"-c", "while :; do :; done"});
  QVERIFY(busy.waitForStarted());

  QVERIFY(service.call("config.set", {{"key", "rules.load"}, {"value", "20"}}).ok());

  QVERIFY(service.wait_until([](const nlohmann::json& now) { return !pause_by(now, "rules.load").empty(); }));
  const nlohmann::json pause = pause_by(service.state(), "rules.load");
  QVERIFY(contains(pause["why"].get<std::string>(), "processors busy"));
  QVERIFY(contains(pause["until"].get<std::string>(), "it has been less than"));
  const std::string status = status_of(service);
  QVERIFY2(contains(status, "paused: other programs keep") && contains(status, "(rules.load)"), status.c_str());
  QVERIFY(std::filesystem::exists(service.home().island.checkpoint() / "inner.state"));
  busy.kill();
  busy.waitForFinished();

  // Who else computes on this machine is not the test's to say.
  QVERIFY(service.call("config.set", {{"key", "rules.load"}, {"value", nullptr}}).ok());
  goes_on_where_it_was(service, run);
}

void RulesRunTest::the_hours_pause_it_and_no_step_is_lost() {
  const std::string hours = later_hour();
  const LocalRun run(long_round());
  AgentService service(run.make_home("by night"));
  QVERIFY(service.wait_until(trains_on));

  QVERIFY(service.call("config.set", {{"key", "schedule.hours"}, {"value", hours}}).ok());

  QVERIFY(service.wait_until([](const nlohmann::json& now) { return !pause_by(now, "schedule.hours").empty(); }));
  const nlohmann::json pause = pause_by(service.state(), "schedule.hours");
  QCOMPARE(pause["until"].get<std::string>(), hours.substr(0, 5));
  QVERIFY(pause["until_unix_seconds"].get<std::int64_t>() > std::time(nullptr));
  QVERIFY(contains(status_of(service), "paused: it is not the hour, until " + hours.substr(0, 5)));
  // Also the next agent follows and says it.
  service.kill();
  QVERIFY(service.wait_until([](const nlohmann::json& now) { return !pause_by(now, "schedule.hours").empty(); }));
  QVERIFY(service.call("config.set", {{"key", "schedule.hours"}, {"value", nullptr}}).ok());
  goes_on_where_it_was(service, run);
}

void RulesRunTest::who_watches_a_joining_is_told() {
  const LocalRun run(long_round());
  const IslandHome home = run.make_home("watched");
  const AgentHome agent = agent_home_in(home.directory);
  QVERIFY(make_directories(agent.state, FileMode::kPrivate).ok());
  QVERIFY(write_setting(agent.settings_file(), "schedule.hours", later_hour()).ok());
  QProcess join;
  join.setProcessChannelMode(QProcess::MergedChannels);
  join.start(QString(ATOLL_BIN_DIR) + "/atoll",
             {"join", "--yes", "--home", QString::fromStdString(home.directory.string())});
  QByteArray said;
  const auto says = [&](const char* text) {
    return wait_for([&] {
      join.waitForReadyRead(50);
      said += join.readAllStandardOutput();
      return said.contains(text);
    });
  };

  QVERIFY2(says("paused: it is not the hour, until"), said.constData());
  const auto client = ControlClient::connect(agent.socket, Deadline::after(kAgentLimit));
  QVERIFY(client.ok());
  const nlohmann::json back = {{"key", "schedule.hours"}, {"value", nullptr}};
  QVERIFY((*client)->call("config.set", back, Deadline::after(kAgentLimit)).ok());

  QVERIFY2(says("training goes on"), said.constData());
  join.terminate();
  QVERIFY(join.waitForFinished(100'000));
}

QTEST_GUILESS_MAIN(RulesRunTest)
#include "rules_run_test.moc"
