#include "net/hub/island_dialer.h"

#include <poll.h>

#include <QtTest>
#include <atomic>
#include <future>

#include "net/transport/peer_listener.h"
#include "net/transport/socket.h"
#include "tests/fakes/test_run.h"
#include "tests/timing.h"

namespace atl {

using namespace std::chrono_literals;

class IslandDialerTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void an_island_that_listens_answers();
  void a_port_where_nobody_listens_does_not();
  void another_island_at_the_address_does_not();
  void what_never_answers_holds_nobody_up();
  void a_named_host_is_where_its_island_answers_as_a_literal_address();
  void nothing_nearer_than_the_island_itself_is_dialled_for_it_data();
  void nothing_nearer_than_the_island_itself_is_dialled_for_it();

 private:
  Result<Address> prove(int number, const Address& named, const std::string& host) {
    std::promise<Result<Address>> found;
    const auto dialer = IslandDialer::start(run_.hub(), [](const IslandId&, const Address&, bool) {}).value();
    dialer->prove(TestRun::island_id(number), named, host,
                  [&](Result<Address> told) { found.set_value(std::move(told)); });
    auto future = found.get_future();
    if (future.wait_for(test::kForEver) != std::future_status::ready) qFatal("the dialer says nothing");
    return future.get();
  }
  std::unique_ptr<PeerListener> listen(int number) {
    const auto nobody = [](const PeerCertificate&) { return Status(Error{ErrorCode::kCertificate, "not a member"}); };
    return PeerListener::start({.bind = {"127.0.0.1", 0}}, TlsContext::island_server(run_.island(number)).value(),
                               nobody, inbox_, [](TlsConnection, const AbortSignal&) {})
        .value();
  }
  // What the dialer says of island `number` at 127.0.0.1.
  bool answers(int number, std::uint16_t port) {
    std::promise<bool> answered;
    const auto dialer =
        IslandDialer::start(run_.hub(), [&](const IslandId& island, const Address& address, bool result) {
          if (island == TestRun::island_id(number) && address.port == port) answered.set_value(result);
        }).value();
    dialer->dial(TestRun::island_id(number), {"127.0.0.1", port});
    auto future = answered.get_future();
    if (future.wait_for(20s) == std::future_status::ready) return future.get();
    QTest::qFail("the dialer says nothing", __FILE__, __LINE__);
    return false;
  }

  TestRun run_;
  RingInbox inbox_;
};

void IslandDialerTest::an_island_that_listens_answers() {
  const auto listener = listen(1);

  QVERIFY(answers(1, listener->port()));  // though the hub is in no roster of members
}

void IslandDialerTest::a_port_where_nobody_listens_does_not() {
  const std::uint16_t port = listen(1)->port();  // closed again

  QVERIFY(!answers(1, port));
}

void IslandDialerTest::another_island_at_the_address_does_not() {
  const auto listener = listen(2);

  QVERIFY(!answers(1, listener->port()));
}

void IslandDialerTest::what_never_answers_holds_nobody_up() {
  const UniqueFd deaf = listen_tcp({"127.0.0.1", 0}).value();  // connects, and never shakes hands
  const auto listener = listen(1);
  std::promise<void> answered;
  std::atomic<int> given_up = 0;
  auto dialer = IslandDialer::start(run_.hub(), [&](const IslandId& island, const Address&, bool result) {
                  if (result && island == TestRun::island_id(1)) answered.set_value();
                  given_up += result ? 0 : 1;
                }).value();
  for (std::size_t i = 0; i + 1 < IslandDialer::kAtOnce; ++i) {
    dialer->dial(TestRun::island_id(2), {"127.0.0.1", local_port(deaf.get())});
  }

  dialer->dial(TestRun::island_id(1), {"127.0.0.1", listener->port()});

  QVERIFY(answered.get_future().wait_for(test::kForEver) == std::future_status::ready);
  dialer.reset();                // ends what is under way
  QCOMPARE(given_up.load(), 0);  // none of the others was waited for
}

void IslandDialerTest::a_named_host_is_where_its_island_answers_as_a_literal_address() {
  const auto listener = listen(1);

  const auto own = prove(1, {"localhost", listener->port()}, "127.0.0.1");
  const auto of_another = prove(2, {"localhost", listener->port()}, "127.0.0.1");

  QVERIFY2(own.ok(), own.ok() ? "" : own.error().message.c_str());
  QCOMPARE(own->host, std::string("127.0.0.1"));
  QVERIFY(!of_another.ok());
  QCOMPARE(of_another.error().code, ErrorCode::kUnreachable);
}

void IslandDialerTest::nothing_nearer_than_the_island_itself_is_dialled_for_it_data() {
  QTest::addColumn<QString>("named");
  QTest::addColumn<QString>("host");
  for (const char* named : {"127.0.0.1", "localhost", "0.0.0.0", "::1", "::ffff:127.0.0.1"}) {
    QTest::addRow("%s from the internet", named) << QString(named) << QString("9.9.9.9");
    QTest::addRow("%s from another machine", named) << QString(named) << QString("192.168.1.7");
  }
  QTest::newRow("where it comes from is not known") << QString("127.0.0.1") << QString("hub");
}

void IslandDialerTest::nothing_nearer_than_the_island_itself_is_dialled_for_it() {
  QFETCH(const QString, named);
  QFETCH(const QString, host);
  const UniqueFd here = listen_tcp({"::", 0}).value();

  const auto found = prove(1, {named.toStdString(), local_port(here.get())}, host.toStdString());

  QVERIFY(!found.ok());
  QVERIFY(!wait_ready(here.get(), POLLIN, Deadline::after(0ms), nullptr, "look").ok());  // nobody came
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::IslandDialerTest)
#include "island_dialer_test.moc"
