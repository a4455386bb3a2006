#include "net/recovery/state_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <QtCore/QTemporaryDir>
#include <QtTest>
#include <fstream>
#include <thread>

#include "net/recovery/round_manifest.h"
#include "net/transport/socket.h"
#include "tests/fakes/patience.h"
#include "tests/net/recovery/committed_run.h"
#include "tests/net/recovery/state_peers.h"

namespace atl {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kNumel = 1000;  // one chunk of 8000 bytes

bool flip_byte(const std::filesystem::path& path, std::streamoff at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 1));
  return file.good();
}

}  // namespace

class StateServerTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_request_gets_its_status();
  void every_request_gets_its_status_data();
  void a_chunk_comes_with_version_and_digest();
  void a_range_of_a_chunk_is_that_part();
  void many_requests_share_a_connection();
  void an_endless_header_ends_the_connection();
  void a_request_that_comes_a_byte_at_a_time_is_ended();
  void a_connection_without_requests_is_ended();
  void a_slow_but_living_fetch_is_not_cut();
  void a_fetch_that_reads_nothing_more_is_ended();
  void a_fetch_that_this_island_holds_back_is_not_cut();
  void a_logged_round_is_served_by_what_the_hub_signed();
  void an_average_is_hashed_once_however_many_ask();
  void an_average_that_is_damaged_on_the_disk_is_not_served();

 private:
  struct Reply {
    QString head;
    std::string body;
  };
  TlsConnection connect() { return connect(peer_); }
  TlsConnection connect(const StatePeer& peer) {
    const auto context = TlsContext::client(run_.island(2), kAlpnHttp).value();
    const auto where = peer.address();
    return TlsConnection::connect(where.address, context, where.id, Deadline::after(std::chrono::seconds(5))).value();
  }
  // Sends the lines as one request and reads the reply to its end.
  Reply ask(TlsConnection& connection, const std::string& lines) {
    const auto deadline = Deadline::after(std::chrono::seconds(5));
    connection.write_all(as_bytes(lines + "\r\nHost: island\r\n\r\n"), deadline).ok();
    Reply reply;
    reply.head = QString::fromStdString(read_request_head(connection, abort_));
    const auto length = reply.head.indexOf("Content-Length: ");
    Bytes body(
        length < 0 ? 0 : reply.head.mid(length + 16, reply.head.indexOf("\r\n", length) - length - 16).toULongLong());
    connection.read_exact(body, deadline).ok();
    reply.body = to_string(ByteView(body));
    return reply;
  }

  TestRun run_;
  AbortSignal abort_;
  FakeState state_{OuterStep{7}, kNumel, 1};
  StatePeer peer_{run_.island(1), state_};
};

void StateServerTest::every_request_gets_its_status_data() {
  QTest::addColumn<QString>("lines");
  QTest::addColumn<int>("status");
  QTest::newRow("manifest") << "GET /state/manifest HTTP/1.1" << 200;
  QTest::newRow("chunk") << "GET /state/7/0 HTTP/1.1" << 200;
  QTest::newRow("a probe") << "GET /v1/probe?bytes=1000 HTTP/1.1" << 200;
  QTest::newRow("a probe of nothing") << "GET /v1/probe?bytes=0 HTTP/1.1" << 400;
  QTest::newRow("a probe too large") << "GET /v1/probe?bytes=16777217 HTTP/1.1" << 400;
  QTest::newRow("a probe of no number") << "GET /v1/probe?bytes=1e9 HTTP/1.1" << 400;
  QTest::newRow("an older version") << "GET /state/6/0 HTTP/1.1" << 412;
  QTest::newRow("a newer version") << "GET /state/8/0 HTTP/1.1" << 412;
  QTest::newRow("no such chunk") << "GET /state/7/1 HTTP/1.1" << 404;
  QTest::newRow("no number") << "GET /state/7/x HTTP/1.1" << 404;
  QTest::newRow("too large a number") << "GET /state/7/99999999999999999999999 HTTP/1.1" << 404;
  QTest::newRow("another path") << "GET / HTTP/1.1" << 404;
  QTest::newRow("another path above") << "GET /state/../key.pem HTTP/1.1" << 404;
  QTest::newRow("range past the end") << "GET /state/7/0 HTTP/1.1\r\nRange: bytes=8000-" << 416;
  QTest::newRow("a chunk of data, of which it has none") << "GET /data/0/0 HTTP/1.1" << 404;
  QTest::newRow("what is no chunk of data") << "GET /data/0/../1 HTTP/1.1" << 404;
  QTest::newRow("part") << "GET /state/7/0 HTTP/1.1\r\nRange: bytes=100-" << 206;
  QTest::newRow("POST") << "POST /state/manifest HTTP/1.1" << 405;
  QTest::newRow("DELETE") << "DELETE /state/7/0 HTTP/1.1" << 405;
  QTest::newRow("PUT with a body") << "PUT /state/7/0 HTTP/1.1\r\nContent-Length: 3" << 405;
}

void StateServerTest::every_request_gets_its_status() {
  QFETCH(QString, lines);
  QFETCH(int, status);
  TlsConnection connection = connect();

  const Reply reply = ask(connection, lines.toStdString());

  QVERIFY2(reply.head.startsWith(QString("HTTP/1.1 %1 ").arg(status)), qPrintable(reply.head));
}

void StateServerTest::a_chunk_comes_with_version_and_digest() {
  TlsConnection connection = connect();

  const Reply reply = ask(connection, "GET /state/7/0 HTTP/1.1");

  const Bytes chunk = state_.copy_chunk(OuterStep{7}, 0).value();
  const auto digest = QCryptographicHash::hash(QByteArray::fromStdString(reply.body), QCryptographicHash::Sha256);
  QCOMPARE(reply.body, to_string(ByteView(chunk)));
  QVERIFY(reply.head.contains("ETag: \"7\"\r\n"));
  QVERIFY(reply.head.contains("Repr-Digest: sha-256=:" + digest.toBase64() + ":\r\n"));
}

void StateServerTest::a_range_of_a_chunk_is_that_part() {
  TlsConnection connection = connect();

  const Reply reply = ask(connection, "GET /state/7/0 HTTP/1.1\r\nRange: bytes=100-199");

  const Bytes chunk = state_.copy_chunk(OuterStep{7}, 0).value();
  QCOMPARE(reply.body, to_string(ByteView(chunk).subspan(100, 100)));
  QVERIFY(reply.head.contains("Content-Range: bytes 100-199/8000\r\n"));
}

void StateServerTest::many_requests_share_a_connection() {
  TlsConnection connection = connect();
  for (int i = 0; i < 20; ++i) {
    QVERIFY(ask(connection, "GET /state/7/0 HTTP/1.1").head.startsWith("HTTP/1.1 200 "));
    QVERIFY(ask(connection, "GET /state/6/0 HTTP/1.1").head.startsWith("HTTP/1.1 412 "));
  }
}

void StateServerTest::an_endless_header_ends_the_connection() {
  TlsConnection connection = connect();
  const auto deadline = Deadline::after(std::chrono::seconds(5));
  const std::string line = "X-Long: " + std::string(1000, 'x') + "\r\n";
  connection.write_all(as_bytes("GET /state/manifest HTTP/1.1\r\n"), deadline).ok();
  for (int i = 0; i < 12; ++i) {
    if (!connection.write_all(as_bytes(line), deadline).ok()) break;
  }

  Bytes piece(1 << 16);
  std::string answer;
  for (;;) {
    const Result<std::size_t> count = connection.read_some(piece, deadline);
    if (!count.ok() || *count == 0) break;
    answer += to_string(ByteView(piece).first(*count));
  }

  QVERIFY(!deadline.expired());  // it ended, and not by our patience
  // A reset by the end of the connection may overtake the answer, or cut it short.
  const std::string_view refusal = "HTTP/1.1 431 ";
  QVERIFY2(answer.substr(0, refusal.size()) == refusal.substr(0, answer.size()), answer.c_str());
}

void StateServerTest::a_request_that_comes_a_byte_at_a_time_is_ended() {
  StatePeer hurried(run_.island(1), state_, Behaviour::kGood, {.header = 300ms});
  TlsConnection connection = connect(hurried);
  const Deadline deadline = Deadline::after(20s);

  const std::string endless = "GET /state/manifest HTTP/1.1\r\nX: " + std::string(1000, 'x');
  std::size_t said = 0;
  while (said < endless.size() && connection.write_all(as_bytes(endless).subspan(said, 1), deadline).ok()) {
    ++said;
    std::this_thread::sleep_for(20ms);
    if (wait_ready(connection.fd(), POLLIN, Deadline::after(0ms), nullptr, "look").ok()) break;
  }

  QVERIFY(said < endless.size());
  QTRY_COMPARE(hurried.serving(), 0);
}

void StateServerTest::a_connection_without_requests_is_ended() {
  StatePeer hurried(run_.island(1), state_, Behaviour::kGood, {.idle = 2s});
  TlsConnection connection = connect(hurried);
  QVERIFY(ask(connection, "GET /state/7/0 HTTP/1.1").head.startsWith("HTTP/1.1 200 "));

  std::byte next{};
  const auto end = connection.read_some({&next, 1}, Deadline::after(20s));

  QVERIFY(!end.ok() || *end == 0);
  QVERIFY(end.ok() || end.error().code != ErrorCode::kTimeout);
}

// Reads at six times the least rate, for many windows and longer than a connection may be idle.
void StateServerTest::a_slow_but_living_fetch_is_not_cut() {
  const FakeState large(OuterStep{7}, 1'500'000, 1);
  StatePeer hurried(run_.island(1), large, Behaviour::kGood,
                    {.idle = 1200ms, .header = 1200ms, .window = 1200ms, .least_bytes = 32 * 1024});
  TlsConnection connection = connect(hurried);
  const int buffer = 16 * 1024;
  QCOMPARE(::setsockopt(connection.fd(), SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer), 0);
  const Deadline deadline = Deadline::after(60s);
  QVERIFY(connection.write_all(as_bytes("GET /state/7/0 HTTP/1.1\r\nHost: island\r\n\r\n"), deadline).ok());
  QVERIFY(!read_request_head(connection, abort_).empty());

  Bytes piece(16 * 1024);
  for (int i = 0; i < 40; ++i) {
    QVERIFY(connection.read_exact(piece, deadline).ok());
    std::this_thread::sleep_for(100ms);
  }

  QCOMPARE(hurried.serving(), 1);
}

void StateServerTest::a_fetch_that_reads_nothing_more_is_ended() {
  const FakeState large(OuterStep{7}, 1'500'000, 1);
  StatePeer hurried(run_.island(1), large, Behaviour::kGood, {.window = 2s, .least_bytes = 32 * 1024});
  TlsConnection connection = connect(hurried);
  const int buffer = 16 * 1024;
  QCOMPARE(::setsockopt(connection.fd(), SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer), 0);

  QVERIFY(connection.write_all(as_bytes("GET /state/7/0 HTTP/1.1\r\nHost: island\r\n\r\n"), Deadline::after(5s)).ok());

  QTRY_COMPARE(hurried.serving(), 1);
  QTRY_COMPARE_WITH_TIMEOUT(hurried.serving(), 0, 20'000);
}

// For ten windows it gets half of what it would have to read in each: by the owner's limit.
void StateServerTest::a_fetch_that_this_island_holds_back_is_not_cut() {
  constexpr double kUpload = 64.0 * 1024;
  const FakeState small(OuterStep{7}, 20'000, 1);
  StatePeer held_back(run_.island(1), small, Behaviour::kGood, {.window = 250ms, .least_bytes = 32 * 1024}, nullptr,
                      kUpload);
  TlsConnection connection = connect(held_back);

  const Reply reply = ask(connection, "GET /state/7/0 HTTP/1.1");

  QCOMPARE(reply.body, to_string(ByteView(small.copy_chunk(OuterStep{7}, 0).value())));
}

void StateServerTest::a_logged_round_is_served_by_what_the_hub_signed() {
  QTemporaryDir home;
  CommittedRun run(run_, 400'000, 1, home.path().toStdString());
  run.commit(2);
  StatePeer peer(run_.island(1), run, Behaviour::kGood, {}, &run.log());
  TlsConnection connection = connect(peer);
  const std::string digest = run.log().rounds().at(OuterStep{1}).record.commit.digest;
  const KeptAverage average = run.log().average(OuterStep{1}, digest).value();

  const std::string manifest = ask(connection, "GET /rounds/1/manifest HTTP/1.1").body;
  const auto read = read_round_manifest(as_bytes(manifest), run_.island(2), OuterStep{1}, 400'000, 1);
  QVERIFY2(read.ok(), read.ok() ? "" : read.error().message.c_str());
  QCOMPARE(read->record.commit.digest, digest);
  QCOMPARE(read->bytes, std::uint64_t{average.canonical.size()});
  const std::string path = "GET /rounds/1/" + digest + "/average HTTP/1.1";
  const Reply part = ask(connection, path + "\r\nRange: bytes=262144-300000");
  QVERIFY(part.head.startsWith("HTTP/1.1 206 "));
  QCOMPARE(part.body, to_string(ByteView(average.canonical).subspan(262'144, 300'001 - 262'144)));
  QCOMPARE(ask(connection, path).body, to_string(ByteView(average.canonical)));

  // Not logged, or of another epoch; and an island that logs nothing.
  const std::string other(64, 'a');
  QVERIFY(ask(connection, "GET /rounds/2/manifest HTTP/1.1").head.startsWith("HTTP/1.1 404 "));
  QVERIFY(ask(connection, "GET /rounds/1/" + other + "/average HTTP/1.1").head.startsWith("HTTP/1.1 404 "));
  QVERIFY(ask(connection, "GET /rounds/1/../../key HTTP/1.1").head.startsWith("HTTP/1.1 404 "));
  TlsConnection elsewhere = this->connect();
  QVERIFY(ask(elsewhere, "GET /rounds/1/manifest HTTP/1.1").head.startsWith("HTTP/1.1 404 "));
}

// What lies on the disk is another average by the second time, and it is not looked at.
void StateServerTest::an_average_is_hashed_once_however_many_ask() {
  QTemporaryDir home;
  CommittedRun run(run_, 1'000'000, 1, home.path().toStdString());  // of four pieces
  run.commit(1);
  ServedRounds rounds(run.log());
  const auto read = [&](std::uint64_t from, std::uint64_t to) {
    const auto manifest = rounds.manifest(OuterStep{0}).value();
    Bytes bytes(std::min(to, manifest->bytes()) - from);
    return manifest->read(from, bytes).ok() ? bytes : Bytes{};
  };
  const std::uint64_t all = rounds.manifest(OuterStep{0}).value()->bytes();
  const Bytes first = read(0, all);
  QVERIFY(read_round_manifest(first, run_.island(2), OuterStep{0}, 1'000'000, 1).ok());

  QVERIFY(flip_byte(run.log().average_file(OuterStep{0}), 92 + 300'000));

  QVERIFY(read(0, all) == first);
  // In parts, as they are sent.
  Bytes parts;
  for (std::uint64_t at = 0; at < all; at += 100) {
    const Bytes part = read(at, at + 100);
    parts.insert(parts.end(), part.begin(), part.end());
  }
  QVERIFY(parts == first);
}

void StateServerTest::an_average_that_is_damaged_on_the_disk_is_not_served() {
  QTemporaryDir home;
  CommittedRun run(run_, 1'000'000, 1, home.path().toStdString());
  run.commit(1);
  QVERIFY(flip_byte(run.log().average_file(OuterStep{0}), 92 + 300'000));
  ServedRounds rounds(run.log());
  const auto manifest = rounds.manifest(OuterStep{0}).value();
  Bytes bytes(manifest->bytes());

  QCOMPARE(manifest->read(0, bytes).error().code, ErrorCode::kCorrupt);

  QCOMPARE(rounds.manifest(OuterStep{0}).error().code, ErrorCode::kNotFound);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::StateServerTest)
#include "state_server_test.moc"
