#include "net/hub/hub_listener.h"

#include <poll.h>
#include <sys/socket.h>

#include <QTemporaryDir>
#include <QtTest>
#include <array>
#include <thread>

#include "net/base/file.h"
#include "net/base/open_files.h"
#include "net/transport/socket.h"
#include "net/transport/tls_connection.h"
#include "tests/fakes/patience.h"
#include "tests/fakes/test_run.h"
#include "tests/net/hub/loopback_hub.h"

namespace atl {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kShardBytes = 12'000'000;

// Everybody of the run is a member; nobody enrols.
class OpenGate final : public HubGate {
 public:
  Result<std::optional<EnrolledIsland>> admit(const PeerCertificate& certificate) override {
    return std::optional(EnrolledIsland{certificate.name, "", to_hex(certificate.key_sha256), {}});
  }
  Result<std::string> renew(const EnrolledIsland&, const std::string&) override {
    return Error{ErrorCode::kInternal, "not here"};
  }
  Result<std::string> contributors() override {
    return Error{ErrorCode::kTimeout, "another process holds the database"};
  }
  std::string past() override { return encode(ToldPast{{{.round = 0, .rounds = 2}}, {}}); }
  EnrolResponse enrol(const EnrolRequest&) override { return Error{ErrorCode::kInternal, "not here"}; }
  AboutResponse about(const AboutRequest&) override { return Error{ErrorCode::kInternal, "not here"}; }
  boost::asio::awaitable<void> serve_island(std::shared_ptr<IslandLink>) override { co_return; }
  void stop_serving(const Error&) override {}
};

NetworkRange range(const char* text) { return NetworkRange::parse(text).value(); }

std::string proxied_text(const std::string& source) { return "PROXY TCP4 " + source + " 127.0.0.1 56324 47000\r\n"; }

std::string proxied_binary(const std::array<std::uint8_t, 4>& source, char command = 1) {
  std::string header("\r\n\r\n\0\r\nQUIT\n", 12);
  header += {static_cast<char>(0x20 | command), 0x11, 0, 12};
  header.append(source.begin(), source.end());
  header += std::string("\x7f\0\0\1\xdc\x04\xb7\x98", 8);
  return header;
}

// A TCP proxy on 127.0.0.1 that begins each connection to the hub with these bytes.
class TcpProxy {
 public:
  TcpProxy(Address hub, std::string header)
      : hub_(std::move(hub)), header_(std::move(header)), listens_(listen_tcp({"127.0.0.1", 0}).value()) {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  Address address() const { return {"127.0.0.1", local_port(listens_.get())}; }

 private:
  void run(const std::stop_token& stop) {
    std::vector<std::jthread> pumps;
    while (!stop.stop_requested()) {
      if (!wait_ready(listens_.get(), POLLIN, Deadline::after(20ms), nullptr, "proxy").ok()) continue;
      UniqueFd client(::accept4(listens_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      UniqueFd hub = connect_tcp(hub_, Deadline::after(5s), nullptr, "proxy").value();
      if (::send(hub.get(), header_.data(), header_.size(), MSG_NOSIGNAL) < 0) continue;
      pumps.emplace_back([client = std::move(client), hub = std::move(hub)](const std::stop_token& ends) {
        while (!ends.stop_requested() && pass(client.get(), hub.get()) && pass(hub.get(), client.get())) {
        }
      });
    }
  }
  static bool pass(int from, int to) {
    if (!wait_ready(from, POLLIN, Deadline::after(2ms), nullptr, "proxy").ok()) return true;
    std::array<char, 16'384> bytes{};
    const ssize_t count = ::recv(from, bytes.data(), bytes.size(), 0);
    return count > 0 && ::send(to, bytes.data(), static_cast<std::size_t>(count), MSG_NOSIGNAL) == count;
  }

  const Address hub_;
  const std::string header_;
  const UniqueFd listens_;
  std::jthread thread_;
};

std::vector<UniqueFd> dial_in_silence(const Address& address, int count) {
  std::vector<UniqueFd> silent;
  for (int i = 0; i < count; ++i) {
    silent.push_back(connect_tcp(address, Deadline::after(5s), nullptr, "dial").value());
  }
  return silent;
}

bool has_something_to_read(const TlsConnection& connection) {
  return wait_ready(connection.fd(), POLLIN, Deadline::after(0ms), nullptr, "look").ok();
}

bool closed_by_hub(TlsConnection& connection) {
  std::byte byte{};
  const auto read = connection.read_some({&byte, 1}, Deadline::after(20s));
  return read.ok() ? *read == 0 : read.error().code != ErrorCode::kTimeout;
}

Status send(TlsConnection& connection, const std::string& text) {
  return connection.write_all(as_bytes(text), Deadline::after(5s));
}

// The head of the answer; empty when there is none.
std::string answer_to(TlsConnection& connection, const std::string& line) {
  if (!send(connection, line + "\r\nHost: hub\r\n\r\n").ok()) return {};
  std::string head;
  std::byte next{};
  while (!head.ends_with("\r\n\r\n") && connection.read_exact({&next, 1}, Deadline::after(5s)).ok()) {
    head.push_back(static_cast<char>(next));
  }
  return head;
}

}  // namespace

class HubListenerTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void cleanup();
  void eleven_hundred_idle_strangers_do_not_keep_a_joiner_out();
  void one_member_does_not_hold_the_places_of_others();
  void a_silent_stranger_is_sent_away_in_time();
  void a_request_that_comes_a_byte_at_a_time_is_ended();
  void a_connection_without_requests_is_ended();
  void a_slow_but_living_fetch_is_not_cut();
  void a_fetch_that_reads_nothing_more_is_ended();
  void a_trusted_proxy_says_where_a_connection_comes_from_data();
  void a_trusted_proxy_says_where_a_connection_comes_from();
  void limits_count_the_address_that_a_trusted_proxy_names();
  void a_trusted_proxy_that_says_nothing_is_refused_data();
  void a_trusted_proxy_that_says_nothing_is_refused();
  void what_another_than_a_trusted_proxy_says_is_refused_data();
  void what_another_than_a_trusted_proxy_says_is_refused();
  void a_member_joins_no_more_often_than_its_rate_and_others_do_not_wait_for_it();

 private:
  void start(const HubPortLimits& limits);
  TlsConnection dial(int number);
  Result<TlsConnection> dial_at(const Address& address, int number);
  UniqueFd say_from_afar(const std::string& header);  // and be silent
  TlsConnection dial_for_the_shard(int number);

  QTemporaryDir directory_;
  TestRun run_;
  OpenGate gate_;
  std::optional<boost::asio::io_context> io_;
  std::optional<TlsContext> tls_;
  std::optional<DataFiles> data_;
  const BaseModelFiles base_model_{HubHome{}};
  std::unique_ptr<CheckEndpoints> checks_;
  std::unique_ptr<HubListener> listener_;
  std::jthread thread_;
};

void HubListenerTest::initTestCase() {
  raise_open_file_limit();
  const std::filesystem::path file = std::filesystem::path(directory_.path().toStdString()) / "shard";
  QVERIFY(write_file_atomically(file, std::string(kShardBytes, 's'), FileMode::kPublic).ok());
}

void HubListenerTest::start(const HubPortLimits& limits) {
  io_.emplace(1);
  tls_.emplace(TlsContext::hub_server(run_.hub()).value());
  const std::filesystem::path shard = std::filesystem::path(directory_.path().toStdString()) / "shard";
  data_.emplace(ServedFiles{{"shard", {shard, kShardBytes}}});
  checks_ = CheckEndpoints::start(*io_, run_.hub(), [] { return CheckAbout{}; }).value();
  listener_ = std::make_unique<HubListener>(*io_, *tls_, *data_, base_model_, *checks_, gate_, limits);
  QVERIFY(listener_->listen({"127.0.0.1", 0}).ok());
  thread_ = std::jthread([this] { io_->run(); });
}

void HubListenerTest::cleanup() {
  if (io_) io_->stop();
  if (thread_.joinable()) thread_.join();
  checks_.reset();
  listener_.reset();
  io_.reset();
}

TlsConnection HubListenerTest::dial(int number) {
  const TlsContext context = TlsContext::client(run_.island(number), kAlpnHttp).value();
  return TlsConnection::connect({"127.0.0.1", listener_->port()}, context, IslandId{kHubName}, Deadline::after(5s))
      .value();
}

Result<TlsConnection> HubListenerTest::dial_at(const Address& address, int number) {
  const TlsContext context = TlsContext::client(run_.island(number), kAlpnHttp).value();
  return TlsConnection::connect(address, context, IslandId{kHubName}, Deadline::after(5s));
}

UniqueFd HubListenerTest::say_from_afar(const std::string& header) {
  UniqueFd connection = connect_tcp({"127.0.0.1", listener_->port()}, Deadline::after(5s), nullptr, "dial").value();
  if (::send(connection.get(), header.data(), header.size(), MSG_NOSIGNAL) < 0) qFatal("cannot send");
  return connection;
}

// With little room for what it has not read.
TlsConnection HubListenerTest::dial_for_the_shard(int number) {
  TlsConnection connection = dial(number);
  const int buffer = 16 * 1024;
  if (::setsockopt(connection.fd(), SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer) != 0) qFatal("no small buffer");
  if (!answer_to(connection, "GET /data/shard HTTP/1.1").starts_with("HTTP/1.1 200 ")) qFatal("no shard");
  return connection;
}

void HubListenerTest::eleven_hundred_idle_strangers_do_not_keep_a_joiner_out() {
  LoopbackHub hub(loopback_run(1, 0));
  const auto silent = dial_in_silence(hub.address(), 1'100);

  const Identity identity = hub.enrol("newcomer");  // from the same address
  PuppetIsland island(hub.address(), identity);

  QVERIFY(hub.wait([](const HubState& state) { return state.outer_step >= 1; }));
}

void HubListenerTest::one_member_does_not_hold_the_places_of_others() {
  start({.connections = {.of_member = 4, .of_members = 8}});
  std::vector<TlsConnection> greedy;
  for (int i = 0; i < 40; ++i) {
    greedy.push_back(dial(1));
    (void)send(greedy.back(), "GET /check/ping HTTP/1.1\r\n");  // never ended: busy, unless it is refused
  }

  TlsConnection other = dial(2);
  QVERIFY(answer_to(other, "GET /check/ping HTTP/1.1").starts_with("HTTP/1.1 200 "));

  QTRY_COMPARE(std::ranges::count_if(greedy, [](const auto& c) { return !has_something_to_read(c); }), 4);
}

void HubListenerTest::a_silent_stranger_is_sent_away_in_time() {
  start({.handshake = 2s});

  const auto silent = dial_in_silence({"127.0.0.1", listener_->port()}, 1);
  TlsConnection member = dial(1);

  QVERIFY(wait_ready(silent[0].get(), POLLIN, Deadline::after(20s), nullptr, "wait for the end").ok());
  QVERIFY(answer_to(member, "GET /check/ping HTTP/1.1").starts_with("HTTP/1.1 200 "));
}

void HubListenerTest::a_request_that_comes_a_byte_at_a_time_is_ended() {
  start({.pace = {.header = 300ms}});
  TlsConnection connection = dial(1);

  const std::string endless = "GET /check/ping HTTP/1.1\r\nX: " + std::string(1000, 'x');
  std::size_t said = 0;
  while (said < endless.size() && !has_something_to_read(connection) && send(connection, {endless[said]}).ok()) {
    ++said;
    std::this_thread::sleep_for(20ms);
  }

  QVERIFY(said < endless.size());
  QVERIFY(closed_by_hub(connection));
}

void HubListenerTest::a_connection_without_requests_is_ended() {
  start({.pace = {.idle = 2s}});
  TlsConnection connection = dial(1);
  QVERIFY(answer_to(connection, "GET /nothing HTTP/1.1").starts_with("HTTP/1.1 404 "));
  Bytes words(std::string_view("there is nothing here\n").size());
  QVERIFY(connection.read_exact(words, Deadline::after(5s)).ok());

  QVERIFY(closed_by_hub(connection));
}

// Reads at six times the least rate, for many windows and longer than a connection may be idle.
void HubListenerTest::a_slow_but_living_fetch_is_not_cut() {
  start({.connections = {.of_member = 1},
         .pace = {.idle = 1200ms, .header = 1200ms, .window = 1200ms, .least_bytes = 32 * 1024}});
  TlsConnection connection = dial_for_the_shard(1);

  Bytes piece(16 * 1024);  // a tenth of a second's: six times what is asked for
  for (int i = 0; i < 40; ++i) {
    QVERIFY(connection.read_exact(piece, Deadline::after(5s)).ok());
    std::this_thread::sleep_for(100ms);
  }

  // It had its member's only place all the time.
  TlsConnection another = dial(1);
  QVERIFY(!answer_to(another, "GET /check/ping HTTP/1.1").starts_with("HTTP/1.1 200 "));
}

void HubListenerTest::a_fetch_that_reads_nothing_more_is_ended() {
  start({.connections = {.of_member = 1}, .pace = {.window = 400ms, .least_bytes = 32 * 1024}});
  TlsConnection connection = dial_for_the_shard(1);

  // Its member's only place is free again.
  QTRY_VERIFY_WITH_TIMEOUT(
      answer_to(*std::make_unique<TlsConnection>(dial(1)), "GET /check/ping HTTP/1.1").starts_with("HTTP/1.1 200 "),
      20'000);
}

void HubListenerTest::a_trusted_proxy_says_where_a_connection_comes_from_data() {
  QTest::addColumn<QByteArray>("header");
  QTest::addColumn<QString>("host");
  const auto row = [](const char* name, const std::string& header, const char* host) {
    QTest::newRow(name) << QByteArray(header.data(), static_cast<qsizetype>(header.size())) << QString(host);
  };
  row("version 1", proxied_text("127.0.0.7"), "127.0.0.7");
  row("version 2", proxied_binary({127, 0, 0, 8}), "127.0.0.8");
  row("its own", proxied_binary({127, 0, 0, 8}, 0), "127.0.0.1");
  row("it does not know", "PROXY UNKNOWN\r\n", "127.0.0.1");
}

// The hub says at which address it dialled whoever asks: where that one comes from.
void HubListenerTest::a_trusted_proxy_says_where_a_connection_comes_from() {
  QFETCH(const QByteArray, header);
  QFETCH(const QString, host);
  start({.trusted_proxies = {range("192.0.2.0/24"), range("127.0.0.1")}});
  const TcpProxy proxy({"127.0.0.1", listener_->port()}, header.toStdString());
  auto connection = dial_at(proxy.address(), 1);
  QVERIFY2(connection.ok(), connection.ok() ? "" : connection.error().message.c_str());

  QVERIFY(answer_to(*connection, "GET /check/dial?port=1 HTTP/1.1\r\nConnection: close").starts_with("HTTP/1.1 200 "));

  std::string said;
  std::byte next{};
  while (connection->read_exact({&next, 1}, Deadline::after(5s)).ok()) said.push_back(static_cast<char>(next));
  QVERIFY2(said.find("\"host\":\"" + host.toStdString() + "\"") != std::string::npos, said.c_str());
}

void HubListenerTest::limits_count_the_address_that_a_trusted_proxy_names() {
  start({.connections = {.of_address = 1}, .trusted_proxies = {range("127.0.0.1")}});
  const UniqueFd one = say_from_afar(proxied_text("192.0.2.1")), other = say_from_afar(proxied_text("192.0.2.2"));
  QVERIFY(!wait_ready(one.get(), POLLIN, Deadline::after(300ms), nullptr, "look").ok());

  const UniqueFd again = say_from_afar(proxied_text("192.0.2.1"));

  QVERIFY(wait_ready(one.get(), POLLIN, Deadline::after(20s), nullptr, "wait for the end").ok());
  QVERIFY(!wait_ready(other.get(), POLLIN, Deadline::after(0ms), nullptr, "look").ok());
}

void HubListenerTest::a_trusted_proxy_that_says_nothing_is_refused_data() {
  QTest::addColumn<QByteArray>("says");
  QTest::newRow("a TLS hello") << QByteArray("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03xx", 13);
  QTest::newRow("a line without end") << QByteArray("PROXY TCP4 " + QByteArray(200, '1'));
  QTest::newRow("no address") << QByteArray("PROXY TCP4 reef.example 127.0.0.1 1 2\r\n");
  QTest::newRow("half of it") << QByteArray("PROXY TCP4 127.0");
}

void HubListenerTest::a_trusted_proxy_that_says_nothing_is_refused() {
  QFETCH(const QByteArray, says);
  start({.handshake = 1s, .trusted_proxies = {range("127.0.0.1")}});

  const UniqueFd connection = say_from_afar(says.toStdString());

  QVERIFY(wait_ready(connection.get(), POLLIN, Deadline::after(20s), nullptr, "wait for the end").ok());
  std::byte byte{};
  QVERIFY(::recv(connection.get(), &byte, 1, 0) <= 0);
}

void HubListenerTest::what_another_than_a_trusted_proxy_says_is_refused_data() {
  QTest::addColumn<QByteArray>("header");
  const std::string binary = proxied_binary({127, 0, 0, 8});
  QTest::newRow("version 1") << QByteArray::fromStdString(proxied_text("127.0.0.7"));
  QTest::newRow("version 2") << QByteArray(binary.data(), static_cast<qsizetype>(binary.size()));
}

void HubListenerTest::what_another_than_a_trusted_proxy_says_is_refused() {
  QFETCH(const QByteArray, header);
  start({.trusted_proxies = {range("192.0.2.0/24")}});
  const TcpProxy proxy({"127.0.0.1", listener_->port()}, header.toStdString());

  QVERIFY(!dial_at(proxy.address(), 1).ok());

  TlsConnection direct = dial(2);
  QVERIFY(answer_to(direct, "GET /check/ping HTTP/1.1").starts_with("HTTP/1.1 200 "));
}

void HubListenerTest::a_member_joins_no_more_often_than_its_rate_and_others_do_not_wait_for_it() {
  start({.joins_at_once = 3, .join_period = std::chrono::hours(1)});
  const auto joins = [&](int number) {
    TlsConnection connection = dial(number);
    return answer_to(connection,
                     "GET /mesh HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                     "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")
        .substr(0, 12);
  };

  for (int i = 0; i < 3; ++i) QCOMPARE(joins(1), std::string("HTTP/1.1 101"));

  QCOMPARE(joins(1), std::string("HTTP/1.1 429"));
  QCOMPARE(joins(2), std::string("HTTP/1.1 101"));
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::HubListenerTest)
#include "hub_listener_test.moc"
