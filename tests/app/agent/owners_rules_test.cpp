// The owner's rules: as a state machine, as the machine is read, and as an agent follows them. Load is made by a busy
// process; battery, network and login service are a mock on a bus of the test's own.
#include "app/agent/owners_rules.h"

#include <QDBusConnection>
#include <QProcess>
#include <QScopeGuard>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "app/agent/agent.h"
#include "app/agent/machine_reader.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

constexpr int kLimitMilliseconds = 60'000;  // for anything; a hang, not a slow machine
constexpr int kNoon = 12 * 60;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

OwnersRulesSettings all_rules() {
  return {.load = 2, .idle_seconds = 900, .battery = true, .metered = true, .calm_seconds = 60};
}

class Directory {
 public:
  std::filesystem::path path(const std::string& name) const {
    return std::filesystem::path(directory_.path().toStdString()) / name;
  }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(path(name).parent_path());
    std::ofstream(path(name)) << text;
  }

 private:
  QTemporaryDir directory_;
};

// An agent that runs, with a program that only waits for a trainer.
class RunningAgent {
 public:
  RunningAgent(const Directory& files, const OwnersRulesSettings& rules, const MachineReader::Places& machine) {
    files.write("trainer.sh", "#!/bin/sh\nexec sleep 600\n");
    std::filesystem::permissions(files.path("trainer.sh"), std::filesystem::perms::owner_all);
    AgentOptions options;
    options.home = agent_home_in(files.path("home"));
    std::filesystem::create_directory(files.path("home"));
    if (!save_join_file(options.home.island.join_file(), {}).ok()) qFatal("no join file");
    options.trainer = files.path("trainer.sh");
    options.rules = rules;
    options.machine = machine;
    auto agent = Agent::start(options);
    if (!agent.ok()) qFatal("%s", agent.error().message.c_str());
    agent_ = std::move(*agent);
    loop_ = std::jthread([this] { (void)agent_->run(end_); });
  }
  ~RunningAgent() { end_.raise("the test is over"); }

  NodeState state() { return agent_->control().board().state(); }
  bool trains() { return state().agent.trainer_pid > 0; }
  bool pauses_by(const std::string& rule) {
    const NodeState now = state();
    return now.agent.trainer_pid == 0 && now.island.state == IslandPhase::kPaused && now.agent.wish == Wish::kRun &&
           contains(now.agent.warning, rule);
  }

 private:
  std::unique_ptr<Agent> agent_;
  AbortSignal end_;
  std::jthread loop_;
};

}  // namespace

class FakeUPower : public QObject {
  Q_OBJECT
  Q_CLASSINFO("D-Bus Interface", "org.freedesktop.UPower")
  Q_PROPERTY(bool OnBattery MEMBER on_battery)
 public:
  bool on_battery = false;
};

class FakeNetworkManager : public QObject {
  Q_OBJECT
  Q_CLASSINFO("D-Bus Interface", "org.freedesktop.NetworkManager")
  Q_PROPERTY(uint Metered MEMBER metered)
 public:
  uint metered = 2;
};

class FakeLogin : public QObject {
  Q_OBJECT
  Q_CLASSINFO("D-Bus Interface", "org.freedesktop.login1.Manager")
  Q_PROPERTY(bool IdleHint MEMBER idle)
  Q_PROPERTY(qulonglong IdleSinceHint MEMBER since_microseconds)
 public:
  bool idle = true;
  qulonglong since_microseconds = 0;
};

class OwnersRulesTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void what_is_not_known_pauses_nothing();
  void a_pause_does_not_flap();
  void load_between_the_bounds_neither_pauses_nor_resumes();
  void a_person_is_waited_for();
  void all_that_pause_are_said_the_longest_first();
  void the_hours_are_said();
  void the_kernels_files_are_read();
  void a_battery_is_read_data();
  void a_battery_is_read();
  void an_agent_pauses_while_others_compute();
  void an_agent_pauses_by_what_services_say();
};

void OwnersRulesTest::what_is_not_known_pauses_nothing() {
  OwnersRules rules(all_rules());
  rules.next({}, 0);
  QVERIFY(!rules.pauses());
  QCOMPARE(rules.sentence(kNoon), std::string());
  OwnersRules none({});
  none.next({.others_load = 9, .unused_seconds = 0, .on_battery = true, .metered = true}, 0);
  QVERIFY(!none.pauses());
}

void OwnersRulesTest::a_pause_does_not_flap() {
  OwnersRules rules(all_rules());
  rules.next({.on_battery = true}, 100);
  QVERIFY(rules.pauses());
  QVERIFY(contains(rules.sentence(kNoon), "on its battery, until 1 min after it is plugged in (rules.battery)"));
  rules.next({.on_battery = false}, 159);
  QVERIFY(rules.pauses());
  rules.next({.on_battery = true}, 160);  // again: the calm time begins anew
  rules.next({.on_battery = false}, 219);
  QVERIFY(rules.pauses());
  rules.next({.on_battery = false}, 220);
  QVERIFY(!rules.pauses());
}

void OwnersRulesTest::load_between_the_bounds_neither_pauses_nor_resumes() {
  OwnersRules rules(all_rules());
  rules.next({.others_load = 1.9}, 0);
  QVERIFY(!rules.pauses());
  rules.next({.others_load = 2.1}, 10);
  QVERIFY(contains(rules.sentence(kNoon), "keep 2.1 processors busy, until it has been less than 1.5 for 1 min"));
  rules.next({.others_load = 1.6}, 100);
  rules.next({.others_load = 1.6}, 200);
  QVERIFY(rules.pauses());
  rules.next({.others_load = 1.4}, 259);
  QVERIFY(rules.pauses());
  rules.next({.others_load = 1.4}, 260);
  QVERIFY(!rules.pauses());
}

void OwnersRulesTest::a_person_is_waited_for() {
  OwnersRules rules(all_rules());
  rules.next({.unused_seconds = 0}, 0);
  QVERIFY(contains(rules.sentence(kNoon), "until nobody has for 15 min (rules.idle)"));
  rules.next({.unused_seconds = 899}, 899);
  QVERIFY(rules.pauses());
  rules.next({.unused_seconds = 900}, 900);
  QVERIFY(!rules.pauses());
}

void OwnersRulesTest::all_that_pause_are_said_the_longest_first() {
  OwnersRules rules(all_rules());
  rules.next({.metered = true}, 0);
  rules.next({.on_battery = true, .metered = true}, 10);
  const std::string both = rules.sentence(kNoon);
  QVERIFY2(both.find("rules.metered") < both.find("rules.battery") && contains(both, "rules.battery"), both.c_str());
  rules.next({.on_battery = true, .metered = false}, 70);
  QVERIFY(rules.pauses() && !contains(rules.sentence(kNoon), "rules.metered"));
}

void OwnersRulesTest::the_hours_are_said() {
  const OwnersRules rules({.hours = {{22 * 60, 6 * 60}, {13 * 60, 14 * 60}}});
  QCOMPARE(rules.sentence(kNoon), std::string("training is paused: it is not the hour, until 13:00 (schedule.hours)"));
  QVERIFY(contains(rules.sentence(14 * 60), "until 22:00"));
  QCOMPARE(rules.sentence(23 * 60), std::string());
  QVERIFY(!rules.pauses());  // that is the wish's
}

void OwnersRulesTest::the_kernels_files_are_read() {
  const auto ticks = parse_processor_ticks("cpu  10 1 5 100 20 2 3 4 9 9\ncpu0 1 1\ncpu1 1 1\nintr 5\n");
  QVERIFY(ticks);
  QCOMPARE(ticks->busy, std::uint64_t{25});
  QCOMPARE(ticks->all, std::uint64_t{145});
  QCOMPARE(ticks->processors, 2);
  QVERIFY(!parse_processor_ticks("nothing"));
  const auto own = parse_process_ticks("42 (a ) b) S 1 2 3 4 5 6 7 8 9 10 100 20 3 4 20 0");
  QVERIFY(own);
  QCOMPARE(*own, std::uint64_t{127});
  QVERIFY(!parse_process_ticks("42 (a) S 1 2"));
}

void OwnersRulesTest::a_battery_is_read_data() {
  QTest::addColumn<QString>("scope");
  QTest::addColumn<QString>("status");
  QTest::addColumn<QString>("mains");
  QTest::addColumn<int>("expected");  // -1: there is none
  QTest::newRow("away from the mains") << "System"
                                       << "Discharging"
                                       << "0" << 1;
  QTest::newRow("plugged in") << "System"
                              << "Charging"
                              << "1" << 0;
  QTest::newRow("a mains that is too weak") << "System"
                                            << "Discharging"
                                            << "1" << 0;
  QTest::newRow("a mouse's") << "Device"
                             << "Discharging"
                             << "0" << -1;
}

void OwnersRulesTest::a_battery_is_read() {
  QFETCH(QString, scope);
  QFETCH(QString, status);
  QFETCH(QString, mains);
  QFETCH(int, expected);
  const Directory files;
  files.write("power/BAT0/type", "Battery\n");
  files.write("power/BAT0/scope", scope.toStdString() + "\n");
  files.write("power/BAT0/status", status.toStdString() + "\n");
  files.write("power/AC/type", "Mains\n");
  files.write("power/AC/online", mains.toStdString() + "\n");
  const auto battery = battery_of(files.path("power"));
  QCOMPARE(battery ? static_cast<int>(*battery) : -1, expected);
  QVERIFY(!battery_of(files.path("nowhere")));
}

// The load is real. Its end is not: who else computes here is not the test's to say.
void OwnersRulesTest::an_agent_pauses_while_others_compute() {
  const Directory files;
  files.write("proc/stat", "cpu  1 1 1 1 1 1 1 1\ncpu0 1\n");
  RunningAgent agent(files, {.load = 0.2, .calm_seconds = 1},
                     {.proc = files.path("proc"), .power_supplies = files.path("power"), .period = 200ms});
  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kLimitMilliseconds);
  QProcess busy;
  busy.start("sh", {"-c", "while :; do :; done"});
  QVERIFY(busy.waitForStarted());
  const auto ends = qScopeGuard([&] {
    busy.kill();
    busy.waitForFinished();
  });
  std::filesystem::remove(files.path("proc/stat"));
  std::filesystem::create_symlink("/proc/stat", files.path("proc/stat"));

  QTRY_VERIFY_WITH_TIMEOUT(agent.pauses_by("rules.load"), kLimitMilliseconds);
  QVERIFY2(contains(agent.state().agent.warning, "processors busy, until"), agent.state().agent.warning.c_str());

  std::filesystem::remove(files.path("proc/stat"));
  files.write("proc/stat", "cpu  1 1 1 1 1 1 1 1\ncpu0 1\n");
  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kLimitMilliseconds);
  QCOMPARE(agent.state().agent.warning, std::string());
}

void OwnersRulesTest::an_agent_pauses_by_what_services_say() {
  if (QStandardPaths::findExecutable("dbus-daemon").isEmpty() || QStandardPaths::findExecutable("busctl").isEmpty()) {
    QSKIP("needs dbus-daemon and busctl (Debian: dbus-daemon, systemd)");
  }
  const Directory files;
  const QString address = "unix:path=" + QString::fromStdString(files.path("bus").string());
  QProcess daemon;
  daemon.start("dbus-daemon", {"--session", "--nofork", "--nopidfile", "--print-address", "--address=" + address});
  QVERIFY(daemon.waitForReadyRead());
  const QByteArray before = qgetenv("DBUS_SYSTEM_BUS_ADDRESS");
  qputenv("DBUS_SYSTEM_BUS_ADDRESS", address.toUtf8());
  const auto ends = qScopeGuard([&] {
    QDBusConnection::disconnectFromBus("mock");
    daemon.kill();
    daemon.waitForFinished();
    before.isEmpty() ? (void)qunsetenv("DBUS_SYSTEM_BUS_ADDRESS") : (void)qputenv("DBUS_SYSTEM_BUS_ADDRESS", before);
  });
  FakeUPower power;
  FakeNetworkManager network;
  FakeLogin login;
  QDBusConnection bus = QDBusConnection::connectToBus(address, "mock");
  QVERIFY(bus.registerObject("/org/freedesktop/UPower", &power, QDBusConnection::ExportAllProperties));
  QVERIFY(bus.registerObject("/org/freedesktop/NetworkManager", &network, QDBusConnection::ExportAllProperties));
  QVERIFY(bus.registerObject("/org/freedesktop/login1", &login, QDBusConnection::ExportAllProperties));
  for (const char* name : {"org.freedesktop.UPower", "org.freedesktop.NetworkManager", "org.freedesktop.login1"}) {
    QVERIFY(bus.registerService(name));
  }
  RunningAgent agent(files, {.idle_seconds = 600, .battery = true, .metered = true, .calm_seconds = 1},
                     {.proc = files.path("proc"), .power_supplies = files.path("power"), .period = 200ms});
  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kLimitMilliseconds);

  power.on_battery = true;
  QTRY_VERIFY_WITH_TIMEOUT(agent.pauses_by("rules.battery"), kLimitMilliseconds);
  network.metered = 3;
  QTRY_VERIFY_WITH_TIMEOUT(agent.pauses_by("rules.metered"), kLimitMilliseconds);
  QVERIFY(agent.pauses_by("rules.battery"));
  power.on_battery = false;
  network.metered = 4;
  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kLimitMilliseconds);

  login.idle = false;
  QTRY_VERIFY_WITH_TIMEOUT(agent.pauses_by("rules.idle"), kLimitMilliseconds);
  login.since_microseconds = 1'000'000;
  login.idle = true;
  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kLimitMilliseconds);
}

QTEST_GUILESS_MAIN(OwnersRulesTest)
#include "owners_rules_test.moc"
