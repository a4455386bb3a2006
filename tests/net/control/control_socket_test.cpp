// The control socket between a real server and real clients on this machine.
#include <QtTest>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <semaphore>
#include <thread>

#include <QTemporaryDir>
#include <nlohmann/json.hpp>

#include "net/base/child_process.h"
#include "net/base/open_files.h"
#include "net/control/control_client.h"
#include "net/control/control_server.h"
#include "net/control/json_rpc.h"
#include "net/control/unix_socket.h"

using namespace atl;
using nlohmann::json;

namespace {

class EchoService : public ControlService {
 public:
  bool is_slow(std::string_view method) const override { return method == "wait"; }
  Result<json> call(std::string_view method, const json& params) override {
    ++calls;
    if (method == "wait") return go_on.try_acquire_for(std::chrono::seconds(20)), json("waited");
    if (method == "echo") return params;
    if (method == "big") return json(std::string(params.at("size").get<std::size_t>(), 'x'));
    if (method == "fail") return Error{ErrorCode::kDiskFull, "no space; free some"};
    return Error{ErrorCode::kNotFound, "no such method"};
  }
  std::binary_semaphore go_on{0};  // for "wait"
  std::atomic<int> calls{0};
};

Deadline soon() { return Deadline::after(std::chrono::seconds(5)); }

// Everything that the peer sends until it closes.
std::string drain(int fd) {
  std::string text;
  char buffer[65536];
  const Deadline deadline = soon();
  while (!deadline.expired()) {
    const ssize_t count = ::recv(fd, buffer, sizeof buffer, 0);
    if (count > 0) text.append(buffer, static_cast<std::size_t>(count));
    if (count == 0 || (count < 0 && errno != EAGAIN)) break;
    if (count < 0) QTest::qWait(1);
  }
  return text;
}

}  // namespace

class ControlSocketTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() {
    socket_ = std::filesystem::path(directory_.filePath(QString("%1/control.sock").arg(++counter_)).toStdString());
    auto server = ControlServer::start(socket_, "test", service_);
    QVERIFY2(server.ok(), server.ok() ? "" : server.error().message.c_str());
    server_ = std::move(*server);
  }
  void cleanup() { server_.reset(); }

  void a_call_returns_what_the_service_says();
  void an_error_keeps_its_code_and_message();
  void what_is_answered_is_printable();
  void the_socket_is_private_and_vanishes_with_its_server();
  void a_path_longer_than_a_socket_address_works();
  void a_second_server_is_refused_while_the_first_lives();
  void a_stale_socket_is_replaced();
  void the_socket_of_a_killed_process_that_waits_for_a_disk_is_replaced();
  void no_server_is_not_running();
  void a_subscriber_gets_kept_events_then_new_ones();
  void a_subscriber_resumes_after_a_sequence_number();
  void garbage_is_answered_once_and_dropped_data();
  void garbage_is_answered_once_and_dropped();
  void a_client_that_never_reads_is_answered_no_more();
  void a_subscriber_that_never_reads_is_dropped();
  void a_slow_call_holds_nobody_up();
  void a_group_may_connect_where_it_is_meant_to();
  void an_answer_longer_than_a_line_becomes_an_error();
  void too_many_clients_do_not_hurt_the_first();
  void a_server_of_another_version_is_refused();

 private:
  std::unique_ptr<ControlClient> connect() {
    auto client = ControlClient::connect(socket_, soon());
    return client.ok() ? std::move(*client) : nullptr;
  }

  QTemporaryDir directory_;
  int counter_ = 0;
  std::filesystem::path socket_;
  EchoService service_;
  std::unique_ptr<ControlServer> server_;
};

void ControlSocketTest::a_call_returns_what_the_service_says() {
  const auto client = connect();
  QVERIFY(client);

  const auto result = client->call("echo", {{"answer", 42}}, soon());

  QVERIFY(result.ok());
  QCOMPARE((*result)["answer"].get<int>(), 42);
}

void ControlSocketTest::an_error_keeps_its_code_and_message() {
  const auto client = connect();

  const auto failed = client->call("fail", json::object(), soon());
  const auto unknown = client->call("no.such", json::object(), soon());

  QCOMPARE(failed.error().code, ErrorCode::kDiskFull);
  QCOMPARE(failed.error().message, std::string("no space; free some"));
  QCOMPARE(unknown.error().code, ErrorCode::kNotFound);
}

void ControlSocketTest::what_is_answered_is_printable() {
  const nlohmann::json said = {{"list", {{{"name", "a\u202Eb\x1b[2J"}}}}, {"text", "one\ntwo"}, {"count", 3}};

  const auto reply = decode_reply(encode_response(1, said)).value();
  const auto event = decode_reply(encode_event(said)).value();

  const nlohmann::json shown = {{"list", {{{"name", "a?b?[2J"}}}}, {"text", "one\ntwo"}, {"count", 3}};
  QCOMPARE(std::get<RpcResponse>(reply).result.value(), shown);
  QCOMPARE(std::get<RpcEvent>(event).params, shown);
}

void ControlSocketTest::the_socket_is_private_and_vanishes_with_its_server() {
  struct stat socket_info {
  }, directory_info{};
  QCOMPARE(::stat(socket_.c_str(), &socket_info), 0);
  QCOMPARE(::stat(socket_.parent_path().c_str(), &directory_info), 0);

  QCOMPARE(socket_info.st_mode & 0777, 0600u);
  QCOMPARE(directory_info.st_mode & 0777, 0700u);
  server_.reset();
  QVERIFY(!std::filesystem::exists(socket_));
}

void ControlSocketTest::a_path_longer_than_a_socket_address_works() {
  const std::filesystem::path deep = socket_.parent_path() / std::string(120, 'd') / "with a space" / "control.sock";

  const auto server = ControlServer::start(deep, "test", service_);
  const auto client = ControlClient::connect(deep, soon());

  QVERIFY(server.ok());
  QVERIFY(client.ok());
}

void ControlSocketTest::a_second_server_is_refused_while_the_first_lives() {
  const auto second = ControlServer::start(socket_, "test", service_);

  QVERIFY(!second.ok());
  QCOMPARE(second.error().code, ErrorCode::kPermissionDenied);
  QVERIFY(connect());
}

void ControlSocketTest::a_stale_socket_is_replaced() {
  const auto saved = socket_.parent_path() / "stale";
  std::filesystem::rename(socket_, saved);  // what a kill leaves behind: a file that nobody listens on
  server_.reset();
  std::filesystem::rename(saved, socket_);
  QCOMPARE(ControlClient::connect(socket_, soon()).error().code, ErrorCode::kNotRunning);

  const auto server = ControlServer::start(socket_, "test", service_);

  QVERIFY(server.ok());
  QVERIFY(connect());
}

// Its first thread is gone, as after kill -9; another keeps open what it had open, as one does that writes to a disk.
void ControlSocketTest::the_socket_of_a_killed_process_that_waits_for_a_disk_is_replaced() {
  const auto path = socket_.parent_path() / "trainer.sock";
  const auto pipe = make_pipe();
  const pid_t child = ::fork();
  if (child == 0) {
    const auto listener = UnixListener::listen(path);
    std::thread([] { ::pause(); }).detach();
    if (listener.ok() && ::write(pipe->writing.get(), "l", 1) == 1) ::syscall(SYS_exit, 0);
    ::_exit(1);
  }
  char byte = 0;
  QCOMPARE(::read(pipe->reading.get(), &byte, 1), ssize_t{1});
  QTRY_VERIFY_WITH_TIMEOUT(!is_process_alive(child), 20'000);
  QVERIFY(connect_unix(path, soon()).ok());

  const auto listener = UnixListener::listen(path);

  QVERIFY2(listener.ok(), listener.ok() ? "" : listener.error().message.c_str());
  QVERIFY(connect_unix(path, soon()).ok());
  QVERIFY(!UnixListener::listen(path).ok());  // this process lives
  ::kill(child, SIGKILL);
  QCOMPARE(::waitpid(child, nullptr, 0), child);
}

void ControlSocketTest::no_server_is_not_running() {
  server_.reset();

  QCOMPARE(ControlClient::connect(socket_, soon()).error().code, ErrorCode::kNotRunning);
  QCOMPARE(ControlClient::connect("/no/such/directory/control.sock", soon()).error().code, ErrorCode::kNotRunning);
}

void ControlSocketTest::a_subscriber_gets_kept_events_then_new_ones() {
  server_->publish("round.begin", {{"round", 1}});
  const auto client = connect();

  QVERIFY(client->call("events.subscribe", json::object(), soon()).ok());
  const auto kept = client->next_event(soon());
  server_->publish("step", {{"loss", 2.5}});
  const auto fresh = client->next_event(soon());

  QCOMPARE((*kept)["event"].get<std::string>(), std::string("round.begin"));
  QCOMPARE((*kept)["data"]["round"].get<int>(), 1);
  QCOMPARE((*fresh)["seq"].get<int>(), 2);
  QVERIFY((*fresh)["time"].get<double>() > 1e9);
  QCOMPARE(client->next_event(Deadline::after(std::chrono::milliseconds(20))).error().code, ErrorCode::kTimeout);
}

void ControlSocketTest::a_subscriber_resumes_after_a_sequence_number() {
  for (int i = 1; i <= 1500; ++i) server_->publish("step", {{"i", i}});
  const auto client = connect();

  const auto answer = client->call("events.subscribe", {{"since", 1498}}, soon());
  const auto event = client->next_event(soon());

  QCOMPARE((*answer)["first"].get<int>(), 1500 - 1024 + 1);  // what is no longer kept
  QCOMPARE((*event)["seq"].get<int>(), 1499);
}

void ControlSocketTest::garbage_is_answered_once_and_dropped_data() {
  QTest::addColumn<QByteArray>("bytes");
  QTest::newRow("no JSON") << QByteArray("GET / HTTP/1.1\r\n\n");
  QTest::newRow("binary") << QByteArray("\x16\x03\x01\0\xff\n", 6);
  QTest::newRow("nested without end") << QByteArray(500'000, '[') + '\n';
  QTest::newRow("a line without end") << QByteArray(2 << 20, 'a');
  QTest::newRow("no id") << QByteArray("{\"jsonrpc\":\"2.0\",\"method\":\"echo\"}\n");
  QTest::newRow("params that are a list")
      << QByteArray("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":[]}\n");
}

void ControlSocketTest::garbage_is_answered_once_and_dropped() {
  QFETCH(const QByteArray, bytes);
  const auto peer = connect_unix(socket_, soon());
  const Deadline deadline = soon();

  for (qsizetype sent = 0; sent < bytes.size() && !deadline.expired();) {
    const ssize_t count =
        ::send(peer->get(), bytes.data() + sent, static_cast<std::size_t>(bytes.size() - sent), MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN) break;
    if (count > 0) sent += count;
  }
  const std::string answer = drain(peer->get());

  QVERIFY(std::count(answer.begin(), answer.end(), '\n') <= 1);
  QVERIFY(connect());
  QVERIFY(!deadline.expired());
}

void ControlSocketTest::a_slow_call_holds_nobody_up() {
  const auto patient = ControlClient::connect(socket_, soon());
  Result<json> waited = json();
  std::thread waiting([&] { waited = (*patient)->call("wait", json::object(), soon()); });
  const auto other = ControlClient::connect(socket_, soon());

  const auto echo = (*other)->call("echo", {{"a", 1}}, soon());
  service_.go_on.release();
  waiting.join();

  QVERIFY(echo.ok());
  QVERIFY(waited.ok());
  QCOMPARE(waited->get<std::string>(), std::string("waited"));
}

void ControlSocketTest::a_group_may_connect_where_it_is_meant_to() {
  const auto path = socket_.parent_path() / "group.sock";
  const auto server = ControlServer::start(path, "test", service_, SocketAccess::kGroup);
  QVERIFY(server.ok());

  struct stat info {};
  QCOMPARE(::stat(path.c_str(), &info), 0);
  QCOMPARE(info.st_mode & 0777, 0660u);
}

void ControlSocketTest::a_client_that_never_reads_is_answered_no_more() {
  const auto peer = connect_unix(socket_, soon());
  const std::string request = encode_request(1, "big", {{"size", 900'000}});
  const auto client = connect();
  const int before = service_.calls;

  // The server stops reading what it does not answer.
  while (::send(peer->get(), request.data(), request.size(), MSG_NOSIGNAL | MSG_DONTWAIT) > 0) {
  }
  QCOMPARE(errno, EAGAIN);
  QVERIFY(client->call("echo", json::object(), soon()).ok());
  QVERIFY(client->call("echo", json::object(), soon()).ok());

  QVERIFY(service_.calls - before <= 4);
}

void ControlSocketTest::a_subscriber_that_never_reads_is_dropped() {
  const auto peer = connect_unix(socket_, soon());
  const std::string request = encode_request(1, "events.subscribe", {{"since", 0}});
  QVERIFY(::send(peer->get(), request.data(), request.size(), MSG_NOSIGNAL) > 0);
  const Deadline deadline = soon();

  bool dropped = false;
  while (!dropped && !deadline.expired()) {
    server_->publish("log", std::string(100'000, 'x'));
    dropped = ::send(peer->get(), request.data(), request.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN;
  }

  QVERIFY(dropped);
  QVERIFY(connect());
}

void ControlSocketTest::an_answer_longer_than_a_line_becomes_an_error() {
  const auto client = connect();

  QCOMPARE(client->call("big", {{"size", 2 << 20}}, soon()).error().code, ErrorCode::kInternal);
  QVERIFY(client->call("echo", json::object(), soon()).ok());
}

void ControlSocketTest::too_many_clients_do_not_hurt_the_first() {
  raise_open_file_limit();
  const auto first = connect();
  std::vector<UniqueFd> crowd;
  for (int i = 0; i < 1000; ++i) {
    auto peer = connect_unix(socket_, soon());
    if (peer.ok()) crowd.push_back(std::move(*peer));
  }

  QVERIFY(first->call("echo", json::object(), soon()).ok());
  QVERIFY(connect());
}

void ControlSocketTest::a_server_of_another_version_is_refused() {
  auto listener = UnixListener::listen(socket_.parent_path() / "other.sock");
  QVERIFY(listener.ok());
  std::jthread server([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const UniqueFd peer = listener->accept();
      if (!peer) continue;
      const std::string answer = encode_response(1, json{{"version", 99}, {"program", "future"}});
      QCOMPARE(::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL), static_cast<ssize_t>(answer.size()));
      drain(peer.get());
      return;
    }
  });

  const auto client = ControlClient::connect(socket_.parent_path() / "other.sock", soon());

  QCOMPARE(client.error().code, ErrorCode::kVersionUnsupported);
}

QTEST_GUILESS_MAIN(ControlSocketTest)
#include "control_socket_test.moc"
