// What systemd hears of the agent, at the end of a real datagram socket.
#include "app/agent/service_notice.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <QScopeGuard>
#include <QTemporaryDir>
#include <QtTest>
#include <cstddef>
#include <thread>

#include "app/agent/agent.h"
#include "net/base/unique_fd.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

// NOTIFY_SOCKET as systemd makes it: a path, or an abstract name.
class Systemd {
 public:
  explicit Systemd(const std::string& name) : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, sizeof address.sun_path - 1);
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) qFatal("cannot bind");
    const timeval limit{20, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    qputenv("NOTIFY_SOCKET", QByteArray::fromStdString(name));
  }
  ~Systemd() { qunsetenv("NOTIFY_SOCKET"); }

  std::string hear() const {
    char text[256];
    const ssize_t count = ::recv(socket_.get(), text, sizeof text, 0);
    return count < 0 ? "nothing" : std::string(text, static_cast<std::size_t>(count));
  }

 private:
  UniqueFd socket_;
};

}  // namespace

class ServiceNoticeTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_notice_arrives_whole_data();
  void a_notice_arrives_whole();
  void without_a_supervisor_nothing_happens_data();
  void without_a_supervisor_nothing_happens();
  void an_agent_says_that_it_is_ready_alive_and_about_to_end();
};

void ServiceNoticeTest::a_notice_arrives_whole_data() {
  QTest::addColumn<bool>("abstract");
  QTest::newRow("a path") << false;
  QTest::newRow("an abstract name") << true;
}

void ServiceNoticeTest::a_notice_arrives_whole() {
  QFETCH(const bool, abstract);
  const QTemporaryDir directory;
  const Systemd systemd(((abstract ? "@" : "") + directory.filePath("notify")).toStdString());

  notify_service("STATUS=round 42");

  QCOMPARE(systemd.hear(), std::string("STATUS=round 42"));
}

void ServiceNoticeTest::without_a_supervisor_nothing_happens_data() {
  QTest::addColumn<QByteArray>("socket");
  QTest::newRow("none") << QByteArray();
  QTest::newRow("nobody listens") << QByteArray("/nowhere/notify");
  QTest::newRow("no path") << QByteArray("vsock:2:1234");
  QTest::newRow("too long") << QByteArray("/" + QByteArray(200, 'x'));
}

void ServiceNoticeTest::without_a_supervisor_nothing_happens() {
  QFETCH(const QByteArray, socket);
  qputenv("NOTIFY_SOCKET", socket);

  notify_service("READY=1");

  qunsetenv("NOTIFY_SOCKET");
  qunsetenv("WATCHDOG_USEC");
  QVERIFY(!watchdog_period());
  qputenv("WATCHDOG_USEC", "60000000");
  QCOMPARE(watchdog_period().value(), std::chrono::microseconds(30s));
  qunsetenv("WATCHDOG_USEC");
}

void ServiceNoticeTest::an_agent_says_that_it_is_ready_alive_and_about_to_end() {
  const QTemporaryDir directory;
  qputenv("WATCHDOG_USEC", "100000");
  const Systemd systemd(directory.filePath("notify").toStdString());
  AgentOptions options;
  options.home = agent_home_in(directory.path().toStdString());
  const auto agent = Agent::start(std::move(options));
  QVERIFY2(agent.ok(), agent.ok() ? "" : agent.error().message.c_str());
  AbortSignal end;
  {
    const std::jthread loop([&] { (void)(*agent)->run(end); });
    const auto over = qScopeGuard([&] { end.raise("the test is over"); });

    QCOMPARE(systemd.hear(), std::string("READY=1"));
    QCOMPARE(systemd.hear(), std::string("WATCHDOG=1"));
    QCOMPARE(systemd.hear(), std::string("WATCHDOG=1"));
  }
  std::string last = systemd.hear();
  while (last == "WATCHDOG=1") last = systemd.hear();
  QCOMPARE(last, std::string("STOPPING=1"));
  qunsetenv("WATCHDOG_USEC");
}

QTEST_GUILESS_MAIN(ServiceNoticeTest)
#include "service_notice_test.moc"
