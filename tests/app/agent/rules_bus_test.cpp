// The owner's rules by what battery, network and login service say, which are a mock on a bus of the test's own.
#include <QDBusConnection>
#include <QProcess>
#include <QScopeGuard>
#include <QStandardPaths>
#include <QtTest>

#include "tests/app/agent/ruled_agent.h"

using namespace atl;
using namespace atl::test;

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

class RulesBusTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void an_agent_pauses_by_what_services_say();
  void services_that_are_not_there_are_said();
};

void RulesBusTest::an_agent_pauses_by_what_services_say() {
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
  AgentOptions options;
  options.rules = {.idle_seconds = 600, .battery = true, .metered = true, .calm_seconds = 1};
  RuledAgent agent(files, std::move(options));
  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kRuleMilliseconds);

  power.on_battery = true;
  QTRY_VERIFY_WITH_TIMEOUT(agent.pauses_by(OwnersRule::kBattery), kRuleMilliseconds);
  network.metered = 3;
  QTRY_VERIFY_WITH_TIMEOUT(agent.pauses_by(OwnersRule::kMetered), kRuleMilliseconds);
  QVERIFY(agent.pauses_by(OwnersRule::kBattery));
  power.on_battery = false;
  network.metered = 4;
  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kRuleMilliseconds);

  login.idle = false;
  QTRY_VERIFY_WITH_TIMEOUT(agent.pauses_by(OwnersRule::kIdle), kRuleMilliseconds);
  login.since_microseconds = 1'000'000;
  login.idle = true;
  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kRuleMilliseconds);

  // A desktop that has never told it: who waits is told how to mend that.
  login.since_microseconds = 0;
  login.idle = false;
  const Directory others;
  AgentOptions soon;
  soon.rules = {.idle_seconds = 1};
  RuledAgent impatient(others, std::move(soon));
  const auto is_told = [&] {
    return impatient.pause_by(OwnersRule::kIdle).find("atoll config set rules.idle 0s") != std::string::npos;
  };
  QTRY_VERIFY_WITH_TIMEOUT(is_told(), kRuleMilliseconds);
}

void RulesBusTest::services_that_are_not_there_are_said() {
  const QByteArray before = qgetenv("DBUS_SYSTEM_BUS_ADDRESS");
  qputenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere/bus");
  const auto ends = qScopeGuard([&] {
    before.isEmpty() ? (void)qunsetenv("DBUS_SYSTEM_BUS_ADDRESS") : (void)qputenv("DBUS_SYSTEM_BUS_ADDRESS", before);
  });
  const Directory files;
  AgentOptions options;
  options.rules = {.idle_seconds = 600, .battery = true, .metered = true};
  RuledAgent agent(files, std::move(options));

  QTRY_VERIFY_WITH_TIMEOUT(agent.trains(), kRuleMilliseconds);
  QTRY_COMPARE_WITH_TIMEOUT(agent.state().agent.warning,
                            std::string("rules.idle is not watched: no login service (logind) answers; rules.metered "
                                        "is not watched: no NetworkManager answers"),
                            kRuleMilliseconds);
}

QTEST_GUILESS_MAIN(RulesBusTest)
#include "rules_bus_test.moc"
