// The owner's rules as an agent follows them: load and processes on a GPU are real, the GPUs' driver and the kernel's
// files of sensors are fakes.
#include "app/agent/rules_watch.h"

#include <QProcess>
#include <QScopeGuard>
#include <QtTest>
#include <nlohmann/json.hpp>

#include "app/agent/agent_config.h"
#include "net/control/control_client.h"
#include "tests/app/agent/ruled_agent.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr const char* kNoLoad = "cpu  1 1 1 1 1 1 1 1\ncpu0 1\n";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

AgentOptions options_of(const OwnersRulesSettings& rules) {
  AgentOptions options;
  options.rules = rules;
  return options;
}

// Two cards of the fake driver, whose figures are files.
AgentOptions with_cards(const Directory& files, const OwnersRulesSettings& rules) {
  qputenv("FAKE_NVML_DIR", QByteArray::fromStdString(files.path("").string()));
  AgentOptions options = options_of(rules);
  options.gpu_limits.probe = {.program = ATOLL_BIN_DIR "/atoll-gpu-probe", .nvml = FAKE_NVML_LIBRARY};
  return options;
}

// An hour that begins in two hours.
TrainingHours later_hour() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  const int minute = local.tm_hour * 60 + local.tm_min;
  return {(minute + 120) % 1440, (minute + 180) % 1440};
}

// The alerts of the agent that is served at `socket`, from now on.
class Alerts {
 public:
  explicit Alerts(const std::filesystem::path& socket) {
    auto client = ControlClient::connect(socket, Deadline::after(std::chrono::seconds(60)));
    if (!client.ok()) qFatal("%s", client.error().message.c_str());
    client_ = std::move(*client);
    const auto subscribed =
        client_->call("events.subscribe", nlohmann::json::object(), Deadline::after(std::chrono::seconds(60)));
    if (!subscribed.ok()) qFatal("%s", subscribed.error().message.c_str());
  }
  nlohmann::json next() {
    for (;;) {
      const auto event = client_->next_event(Deadline::after(std::chrono::seconds(60)));
      if (!event.ok()) return event.error().message;
      if ((*event)["event"] == "gpu.alert") return (*event)["data"];
    }
  }

 private:
  std::unique_ptr<ControlClient> client_;
};

}  // namespace

class RulesWatchTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() { qunsetenv("FAKE_NVML"); }
  void an_agent_pauses_while_others_compute();
  void an_agent_pauses_while_others_hold_its_gpu();
  void who_computes_without_gpus_does_not_care_who_uses_them();
  void an_agent_pauses_while_a_gpu_is_hot_and_tells_it();
  void a_gpu_that_it_may_not_use_may_be_hot();
  void an_agent_pauses_while_the_processor_is_hot();
  void an_agent_pauses_while_too_much_power_is_drawn();
  void what_cannot_be_watched_is_said_and_pauses_nothing();
  void no_trainer_begins_before_the_rules_were_asked();
  void the_hours_are_followed_and_their_end_is_a_time();
  void rules_are_changed_while_it_runs();
};

void RulesWatchTest::an_agent_pauses_while_others_compute() {
  const Directory files;
  files.write("proc/stat", kNoLoad);
  RuledAgent agent(files, options_of({.load = 0.2, .calm_seconds = 1}));
  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kRuleMilliseconds);
  QProcess busy;
  busy.start("sh", {"-c", "while :; do :; done"});
  QVERIFY(busy.waitForStarted());
  const auto ends = qScopeGuard([&] {
    busy.kill();
    busy.waitForFinished();
  });
  std::filesystem::remove(files.path("proc/stat"));
  std::filesystem::create_symlink("/proc/stat", files.path("proc/stat"));

  QTRY_VERIFY_WITH_TIMEOUT(contains(agent.pause_by(OwnersRule::kLoad), "processors busy, until"), kRuleMilliseconds);
  QCOMPARE(agent.state().agent.warning, std::string());  // a rule that holds is nothing amiss

  // The load is real. Its end is not: who else computes here is not the test's to say.
  files.write("proc/stat", kNoLoad);
  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kRuleMilliseconds);
}

void RulesWatchTest::an_agent_pauses_while_others_hold_its_gpu() {
  const Directory files;
  RuledAgent agent(files, with_cards(files, {.gpu_bytes = 1e9, .calm_seconds = 1}), DeviceChoice::kGpu);
  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kRuleMilliseconds);
  const auto pid_line = [](qint64 pid, const char* megabytes) { return std::to_string(pid) + " " + megabytes + "\n"; };
  // Its own trainer may hold all of it, a desktop a little.
  const std::string ours = pid_line(agent.state().agent.trainer_pid, "79000");
  const qint64 other = ::getppid();
  files.write("computing.1", ours);
  files.write("drawing.1", pid_line(other, "300"));
  QTest::qWait(500);
  QVERIFY(agent.trains());

  files.write("computing.1", ours + pid_line(other, "12000"));

  QTRY_VERIFY_WITH_TIMEOUT(contains(agent.pause_by(OwnersRule::kGpu), "other programs hold 12.0 GB of GPU 1"),
                           kRuleMilliseconds);
  files.write("computing.1", "");
  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kRuleMilliseconds);
}

void RulesWatchTest::who_computes_without_gpus_does_not_care_who_uses_them() {
  const Directory files;
  files.write("computing.0", std::to_string(::getppid()) + " 12000\n");
  files.write("celsius", "95");
  RuledAgent agent(files, with_cards(files, {.gpu_bytes = 1e9, .gpu_celsius = 80}), DeviceChoice::kProcessor);

  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kRuleMilliseconds);
  QTest::qWait(500);

  QVERIFY(agent.trains() && agent.state().agent.warning.empty());
}

void RulesWatchTest::an_agent_pauses_while_a_gpu_is_hot_and_tells_it() {
  const Directory files;
  files.write("celsius", "70");
  RuledAgent agent(files, with_cards(files, {.gpu_celsius = 80, .calm_seconds = 1}), DeviceChoice::kAuto);
  Alerts alerts(files.path("home/agent.sock"));
  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kRuleMilliseconds);

  files.write("celsius", "81");

  QTRY_COMPARE_WITH_TIMEOUT(
      agent.pause_by(OwnersRule::kGpuTemperature),
      std::string("GPU 1 is at 81 C, until it has been below 75 C for 1 s (limits.gpu_temperature)"),
      kRuleMilliseconds);
  QCOMPARE(alerts.next().dump(),
           std::string(R"({"cap_celsius":80.0,"celsius":81.0,"gpu":1,"kind":"temperature","pauses":true})"));
  files.write("celsius", "74");
  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kRuleMilliseconds);
  QCOMPARE(alerts.next()["pauses"].get<bool>(), false);
}

void RulesWatchTest::a_gpu_that_it_may_not_use_may_be_hot() {
  const Directory files;
  files.write("celsius", "95");
  AgentOptions options = with_cards(files, {.gpu_celsius = 80});
  RuledAgent agent(files, std::move(options), DeviceChoice::kGpu, "0");

  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kRuleMilliseconds);
  QTest::qWait(500);

  QVERIFY(agent.trains());
}

void RulesWatchTest::an_agent_pauses_while_the_processor_is_hot() {
  const Directory files;
  files.write("hwmon/hwmon0/name", "coretemp\n");
  files.write("hwmon/hwmon0/temp1_input", "60000\n");
  RuledAgent agent(files, options_of({.cpu_celsius = 90, .calm_seconds = 1}));
  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kRuleMilliseconds);

  files.write("hwmon/hwmon0/temp1_input", "91000\n");

  QTRY_COMPARE_WITH_TIMEOUT(
      agent.pause_by(OwnersRule::kCpuTemperature),
      std::string("the processor is at 91 C, until it has been below 85 C for 1 s (limits.cpu_temperature)"),
      kRuleMilliseconds);
  files.write("hwmon/hwmon0/temp1_input", "84000\n");
  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kRuleMilliseconds);
}

void RulesWatchTest::an_agent_pauses_while_too_much_power_is_drawn() {
  const Directory files;
  files.write("draws", "200");  // each of the two
  RuledAgent agent(files, with_cards(files, {.watts = 500, .calm_seconds = 1}), DeviceChoice::kGpu);
  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kRuleMilliseconds);

  files.write("draws", "260");

  QTRY_COMPARE_WITH_TIMEOUT(
      agent.pause_by(OwnersRule::kPower),
      std::string("the GPUs draw 520 W, until it has been less than 375 W for 1 s (limits.power)"), kRuleMilliseconds);
  files.write("draws", "30");
  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kRuleMilliseconds);
}

void RulesWatchTest::what_cannot_be_watched_is_said_and_pauses_nothing() {
  const Directory files;
  AgentOptions options = with_cards(files, {.gpu_bytes = 1e9, .gpu_celsius = 80, .cpu_celsius = 90, .watts = 500});
  options.gpu_limits.probe.nvml = "/nowhere/libnvidia-ml.so.1";
  RuledAgent agent(files, std::move(options), DeviceChoice::kGpu);

  QTRY_VERIFY_WITH_TIMEOUT(
      contains(agent.state().agent.warning, "rules.gpu and limits.gpu_temperature are not watched: cannot load NVML"),
      kRuleMilliseconds);

  const std::string warning = agent.state().agent.warning;
  for (const char* rule : {"limits.cpu_temperature", "limits.power"}) {
    QVERIFY2(contains(warning, std::string(rule) + " is not watched"), warning.c_str());
  }
  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kRuleMilliseconds);
}

void RulesWatchTest::no_trainer_begins_before_the_rules_were_asked() {
  const Directory files;
  files.write("computing.0", std::to_string(::getppid()) + " 12000\n");
  // A driver that was asleep: a trainer would have begun long before it answers.
  files.write("slow_probe.sh", "#!/bin/sh\nsleep 3\nexec " ATOLL_BIN_DIR "/atoll-gpu-probe \"$@\"\n");
  std::filesystem::permissions(files.path("slow_probe.sh"), std::filesystem::perms::owner_all);
  AgentOptions options = with_cards(files, {.gpu_bytes = 1e9});
  options.gpu_limits.probe.program = files.path("slow_probe.sh");
  RuledAgent agent(files, std::move(options), DeviceChoice::kGpu,
                   /*gpus=*/"all", "echo started > \"$(dirname $0)/started\"");

  QTRY_VERIFY_WITH_TIMEOUT(agent.pauses_by(OwnersRule::kGpu), kRuleMilliseconds);

  QVERIFY(!std::filesystem::exists(files.path("started")));
}

void RulesWatchTest::the_hours_are_followed_and_their_end_is_a_time() {
  const Directory files;
  const TrainingHours hours = later_hour();
  const std::time_t now = std::time(nullptr);
  RuledAgent agent(files, options_of({.hours = {hours}}));

  QTRY_VERIFY_WITH_TIMEOUT(agent.pauses_by(OwnersRule::kHours), kRuleMilliseconds);

  const auto until = agent.state().agent.paused_by[0].until_seconds;
  QVERIFY(until.has_value());
  const std::time_t moment = *until;
  std::tm local{};
  ::localtime_r(&moment, &local);
  QCOMPARE(local.tm_hour * 60 + local.tm_min, hours.begin_minute);
  QVERIFY(*until > now && *until <= now + 24 * 3600);
}

void RulesWatchTest::rules_are_changed_while_it_runs() {
  const Directory files;
  files.write("hwmon/hwmon0/name", "coretemp\n");
  files.write("hwmon/hwmon0/temp1_input", "91000\n");
  AgentOptions options;
  const ConfigSources sources = config_sources(agent_home_in(files.path("home")));
  options.read_config = [sources] { return Config::load(sources); };
  RuledAgent agent(files, std::move(options));
  const auto set = [&](const char* key, const nlohmann::json& value) {
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    const auto client = ControlClient::connect(files.path("home/agent.sock"), deadline);
    return client.ok() && (*client)->call("config.set", {{"key", key}, {"value", value}}, deadline).ok();
  };
  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kRuleMilliseconds);

  QVERIFY(set("limits.cpu_temperature", "90"));
  QTRY_VERIFY_WITH_TIMEOUT(agent.pauses_by(OwnersRule::kCpuTemperature), kRuleMilliseconds);
  QVERIFY(set("schedule.hours", to_string(std::vector{later_hour()})));
  QTRY_VERIFY_WITH_TIMEOUT(agent.pauses_by(OwnersRule::kHours) && agent.pauses_by(OwnersRule::kCpuTemperature),
                           kRuleMilliseconds);
  QVERIFY(set("limits.cpu_temperature", nullptr));
  QVERIFY(set("schedule.hours", nullptr));
  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kRuleMilliseconds);

  QVERIFY(!set("limits.cpu_temperature", "hot"));
  QVERIFY(agent.trains());
}

QTEST_GUILESS_MAIN(RulesWatchTest)
#include "rules_watch_test.moc"
