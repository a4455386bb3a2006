// Real sockets and processes behind the link: an agent's socket, others that misbehave, ssh as a test plays it.
#include "app/core/streams.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <QTemporaryDir>
#include <QtTest>
#include <csignal>
#include <fstream>
#include <thread>

#include "app/core/agent_link.h"
#include "app/core/device_stream.h"
#include "app/core/line_splitter.h"
#include "net/base/file.h"
#include "net/control/control_server.h"
#include "net/control/unix_socket.h"
#include "tests/app/core/loop_watch.h"
#include "tests/fakes/patience.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

constexpr LinkTiming kFast{.first_retry = 20ms, .longest_retry = 100ms, .answer_time = 400ms, .hello_time = 400ms};
constexpr LinkTiming kPatient{.first_retry = 20ms, .longest_retry = 100ms, .answer_time = 20s, .hello_time = 20s};

class Service final : public ControlService {
 public:
  Result<nlohmann::json> call(std::string_view method, const nlohmann::json& params) override {
    if (method == "echo") return params;
    return Error{ErrorCode::kNotFound, "no such method"};
  }
};

// Takes one connection, does with it what the test says, on a thread of its own.
class OddServer {
 public:
  OddServer(const std::filesystem::path& path, std::function<void(int fd)> behave)
      : listener_(*UnixListener::listen(path)),
        thread_([this, behave = std::move(behave)](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            const UniqueFd client = listener_.accept();
            if (client) {
              behave(client.get());
            } else {
              std::this_thread::sleep_for(5ms);
            }
          }
        }) {}

 private:
  UnixListener listener_;
  std::jthread thread_;
};

void send_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (count > 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      std::this_thread::sleep_for(1ms);
    } else {
      return;
    }
  }
}

}  // namespace

class StreamsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { ::signal(SIGPIPE, SIG_IGN); }
  void init() {
    directory_ = std::make_unique<QTemporaryDir>();
    path_ = qgetenv("PATH");
  }
  void cleanup() { qputenv("PATH", path_); }

  void lines_come_whole_however_they_are_cut();
  void a_line_that_is_too_long_ends_it();
  void an_agent_of_this_machine_is_talked_with();
  void a_socket_path_of_any_length_will_do();
  void a_machine_without_an_agent_is_told_apart();
  void an_agent_that_ends_is_looked_for_until_it_is_back();
  void what_it_said_last_is_heard_before_its_end();
  void a_server_that_never_answers_is_lost();
  void a_server_that_never_reads_holds_nothing_up();
  void a_line_beyond_the_limit_is_refused();
  void a_flood_of_lines_never_blocks_the_event_loop();
  void ssh_is_called_as_the_command_line_calls_it();
  void failures_of_ssh_are_told_apart_data();
  void failures_of_ssh_are_told_apart();
  void a_url_that_names_no_machine_starts_nothing();
  void an_ssh_that_hangs_is_ended_without_waiting();

 private:
  std::filesystem::path path(const char* name) const {
    return std::filesystem::path(directory_->path().toStdString()) / name;
  }
  void play_ssh(const std::string& script) const {
    std::filesystem::create_directories(path("bin"));
    std::ofstream(path("bin") / "ssh") << "#!/bin/sh\n" << script << "\n";
    ::chmod((path("bin") / "ssh").c_str(), 0755);
    qputenv("PATH", QByteArray::fromStdString(path("bin").string()) + ":" ATOLL_BIN_DIR ":" + path_);
  }

  std::unique_ptr<QTemporaryDir> directory_;
  QByteArray path_;
};

void StreamsTest::lines_come_whole_however_they_are_cut() {
  const QByteArray text = "one\n\nthree is longer\nrest";
  for (int piece = 1; piece < text.size(); ++piece) {
    LineSplitter lines(64);
    QList<QByteArray> got;
    for (int at = 0; at < text.size(); at += piece) {
      lines.append(text.mid(at, piece));
      while (const auto line = lines.next()) got << *line;
    }
    QCOMPARE(got, (QList<QByteArray>{"one", "", "three is longer"}));
    QVERIFY(!lines.overlong());
  }
}

void StreamsTest::a_line_that_is_too_long_ends_it() {
  LineSplitter exactly(8), beyond(8), never_ending(8);

  exactly.append("12345678\n");
  beyond.append("ok\n123456789\n");
  never_ending.append("123456789");

  QCOMPARE(exactly.next(), std::optional<QByteArray>("12345678"));
  QCOMPARE(beyond.next(), std::optional<QByteArray>("ok"));
  QVERIFY(!beyond.next() && beyond.overlong());
  QVERIFY(!never_ending.next() && never_ending.overlong());
}

void StreamsTest::an_agent_of_this_machine_is_talked_with() {
  Service service;
  const auto server = ControlServer::start(path("agent.sock"), "test", service);
  QVERIFY(server.ok());
  AgentLink link(open_socket(path("agent.sock")), kPatient);
  std::vector<std::string> events;
  connect(&link, &AgentLink::eventReceived, this, [&](const LinkEvent& event) { events.push_back(event.name); });
  link.start();
  QTRY_COMPARE(link.state(), LinkState::kConnected);
  std::optional<nlohmann::json> answer;

  link.call("echo", {{"text", "L\u00FCbeck"}}, this, [&](const auto& result) { answer = *result; });
  (*server)->publish("step", {{"loss", 2.5}});

  QTRY_VERIFY(answer);
  QCOMPARE((*answer)["text"], "L\u00FCbeck");
  QTRY_COMPARE(events, std::vector<std::string>{"step"});
}

void StreamsTest::a_socket_path_of_any_length_will_do() {
  const auto deep = path("a") / std::string(120, 'x') / "agent.sock";
  Service service;
  const auto server = ControlServer::start(deep, "test", service);
  QVERIFY2(server.ok(), server.ok() ? "" : server.error().message.c_str());
  AgentLink link(open_socket(deep), kPatient);

  link.start();

  QTRY_COMPARE(link.state(), LinkState::kConnected);
}

void StreamsTest::a_machine_without_an_agent_is_told_apart() {
  AgentLink nothing(open_socket(path("agent.sock")), kFast), stale(open_socket(path("stale.sock")), kFast);
  std::filesystem::create_directories(path(""));
  QVERIFY(UnixListener::listen(path("stale.sock")).ok());

  nothing.start();
  stale.start();

  QTRY_COMPARE(nothing.state(), LinkState::kNoAgent);
  QTRY_COMPARE(stale.state(), LinkState::kNoAgent);
}

void StreamsTest::an_agent_that_ends_is_looked_for_until_it_is_back() {
  Service service;
  auto server = std::move(ControlServer::start(path("agent.sock"), "test", service)).value();
  AgentLink link(open_socket(path("agent.sock")), kFast);
  int reloads = 0;
  connect(&link, &AgentLink::mustReload, this, [&] { ++reloads; });
  link.start();
  QTRY_COMPARE(link.state(), LinkState::kConnected);

  server.reset();
  QTRY_VERIFY(link.state() == LinkState::kNoAgent);
  server = std::move(ControlServer::start(path("agent.sock"), "test", service)).value();

  QTRY_COMPARE(link.state(), LinkState::kConnected);
  QTRY_COMPARE(reloads, 2);
}

void StreamsTest::what_it_said_last_is_heard_before_its_end() {
  std::string words;
  for (int i = 0; i < 20'000; ++i) words += fmt::format("line {}\n", i);
  const OddServer server(path("agent.sock"), [&](int fd) { send_all(fd, words); });
  const auto stream = open_socket(path("agent.sock"))();
  QByteArray last;
  int lines = 0;
  std::optional<Error> end;
  connect(stream.get(), &LineStream::received, this, [&](const QByteArray& line) {
    QVERIFY(!end);
    last = line;
    ++lines;
  });
  connect(stream.get(), &LineStream::closed, this, [&](const Error& why) { end = why; });

  stream->open();

  QTRY_VERIFY(end);
  QCOMPARE(end->code, ErrorCode::kPeerLost);
  QCOMPARE(lines, 20'000);
  QCOMPARE(last, QByteArray("line 19999"));
}

void StreamsTest::a_server_that_never_answers_is_lost() {
  const OddServer server(path("agent.sock"), [](int fd) {
    char buffer[4096];
    for (int i = 0; i < 200 && ::recv(fd, buffer, sizeof buffer, 0) != 0; ++i) std::this_thread::sleep_for(5ms);
  });
  AgentLink link(open_socket(path("agent.sock")), kFast);
  test::LoopWatch watch;

  link.start();

  QTRY_COMPARE(link.state(), LinkState::kLost);
  QVERIFY2(link.problem().find("hello") != std::string::npos || link.problem().find("answer") != std::string::npos,
           link.problem().c_str());
  QVERIFY2(watch.never_held_up(), qPrintable(QString::number(watch.longest_ms())));
}

void StreamsTest::a_server_that_never_reads_holds_nothing_up() {
  std::atomic<bool> over = false;
  const OddServer server(path("agent.sock"), [&](int) {
    while (!over) std::this_thread::sleep_for(5ms);
  });
  const auto stream = open_socket(path("agent.sock"))();
  std::optional<Error> end;
  connect(stream.get(), &LineStream::closed, this, [&](const Error& why) { end = why; });
  QSignalSpy opened(stream.get(), &LineStream::opened);
  stream->open();
  QTRY_COMPARE(opened.size(), 1);
  test::LoopWatch watch;

  for (int i = 0; i < 1000 && !end; ++i) {
    stream->send(QByteArray(64 * 1024, 'x') + "\n");
    QTest::qWait(0);
  }

  over = true;
  QTRY_VERIFY(end);
  QCOMPARE(end->code, ErrorCode::kTimeout);
  QVERIFY2(watch.never_held_up(), qPrintable(QString::number(watch.longest_ms())));
}

void StreamsTest::a_line_beyond_the_limit_is_refused() {
  const std::string line(kMaxControlLineBytes + 1, 'x');
  const OddServer server(path("agent.sock"), [&](int fd) { send_all(fd, line); });
  const auto stream = open_socket(path("agent.sock"))();
  std::optional<Error> end;
  int lines = 0;
  connect(stream.get(), &LineStream::received, this, [&] { ++lines; });
  connect(stream.get(), &LineStream::closed, this, [&](const Error& why) { end = why; });

  stream->open();

  QTRY_VERIFY(end);
  QCOMPARE(end->code, ErrorCode::kProtocol);
  QCOMPARE(lines, 0);
}

void StreamsTest::a_flood_of_lines_never_blocks_the_event_loop() {
  std::string words;
  while (words.size() < (40u << 20)) words += "{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":{}}\n";
  const OddServer server(path("agent.sock"), [&](int fd) { send_all(fd, words); });
  const auto stream = open_socket(path("agent.sock"))();
  bool end = false;
  std::int64_t bytes = 0;
  connect(stream.get(), &LineStream::received, this, [&](const QByteArray& line) { bytes += line.size() + 1; });
  connect(stream.get(), &LineStream::closed, this, [&] { end = true; });
  test::LoopWatch watch;

  stream->open();

  QTRY_VERIFY_WITH_TIMEOUT(end, 60'000);
  QCOMPARE(bytes, static_cast<std::int64_t>(words.size()));
  QVERIFY2(watch.never_held_up(), qPrintable(QString::number(watch.longest_ms())));
}

// ---- ssh

void StreamsTest::ssh_is_called_as_the_command_line_calls_it() {
  qputenv("ATOLL_HOME", QByteArray::fromStdString(path("home").string()));
  Service service;
  std::filesystem::create_directories(path("home"));
  auto server = std::move(ControlServer::start(path("home") / "agent.sock", "test", service)).value();
  play_ssh("echo \"$@\" >> '" + path("calls").string() +
           "'\nwhile [ \"$1\" != -- ]; do shift; done\nshift 2\nexec \"$@\"");
  AgentLink link(open_ssh("ssh://me@node:2222"), kPatient);
  std::vector<std::string> events;
  connect(&link, &AgentLink::eventReceived, this, [&](const LinkEvent& event) { events.push_back(event.name); });
  link.start();
  QTRY_COMPARE_WITH_TIMEOUT(link.state(), LinkState::kConnected, 20'000);

  server->publish("step", {{"loss", 2.5}});
  QTRY_COMPARE(events, std::vector<std::string>{"step"});
  const std::string calls = *read_file(path("calls"));
  QVERIFY2(calls.find("-p 2222 -l me -- node atoll control --stdio") != std::string::npos, calls.c_str());

  // The agent there goes and comes: the way to the machine stays.
  server.reset();
  link.call("echo", nlohmann::json::object(), this, [](const auto&) {});
  QTRY_COMPARE_WITH_TIMEOUT(link.state(), LinkState::kNoAgent, 20'000);
  server = std::move(ControlServer::start(path("home") / "agent.sock", "test", service)).value();
  QTRY_COMPARE_WITH_TIMEOUT(link.state(), LinkState::kConnected, 20'000);
  QCOMPARE(*read_file(path("calls")), calls);
  qunsetenv("ATOLL_HOME");
}

void StreamsTest::failures_of_ssh_are_told_apart_data() {
  QTest::addColumn<QString>("script");
  QTest::addColumn<int>("state");
  QTest::addColumn<QString>("words");
  QTest::newRow("no such host") << "echo 'ssh: Could not resolve hostname node' >&2; exit 255"
                                << static_cast<int>(LinkState::kLost) << "Could not resolve hostname node";
  QTest::newRow("not permitted") << "echo 'me@node: Permission denied (publickey).' >&2; exit 255"
                                 << static_cast<int>(LinkState::kRefused)
                                 << "(publickey). In a terminal, try: ssh -p 2222 me@node true";
  QTest::newRow("unknown host key") << "echo 'Host key verification failed.' >&2; exit 255"
                                    << static_cast<int>(LinkState::kRefused) << "Host key verification failed.";
  QTest::newRow("no atoll there") << "echo 'sh: atoll: not found' >&2; exit 127"
                                  << static_cast<int>(LinkState::kRefused) << "Install it there";
  QTest::newRow("it broke") << "read line; echo '{\"id\":1,\"jsonrpc\":\"2.0\",\"result\":{\"version\":1}}'; exit 1"
                            << static_cast<int>(LinkState::kLost) << "broke";
}

void StreamsTest::failures_of_ssh_are_told_apart() {
  QFETCH(const QString, script);
  QFETCH(const int, state);
  QFETCH(const QString, words);
  play_ssh(script.toStdString());
  AgentLink link(open_ssh("ssh://me@node:2222"), kPatient);

  link.start();

  QTRY_COMPARE_WITH_TIMEOUT(static_cast<int>(link.state()), state, 20'000);
  QVERIFY2(link.problem().find(words.toStdString()) != std::string::npos, link.problem().c_str());
}

void StreamsTest::a_url_that_names_no_machine_starts_nothing() {
  play_ssh("touch '" + path("called").string() + "'");
  AgentLink link(open_ssh("ssh://-oProxyCommand=touch"), kPatient);

  link.start();

  QTRY_COMPARE(link.state(), LinkState::kRefused);
  QVERIFY(!std::filesystem::exists(path("called")));
}

void StreamsTest::an_ssh_that_hangs_is_ended_without_waiting() {
  play_ssh("trap '' HUP\necho $$ > '" + path("pid").string() + "'\nexec sleep 600");
  auto link = std::make_unique<AgentLink>(open_ssh("ssh://me@node"), kPatient);
  link->start();
  QTRY_VERIFY_WITH_TIMEOUT(std::filesystem::exists(path("pid")) && std::filesystem::file_size(path("pid")) > 0, 20'000);
  const pid_t pid = std::stoi(*read_file(path("pid")));
  test::LoopWatch watch;

  link.reset();

  QTRY_VERIFY(::kill(pid, 0) != 0);
  QVERIFY2(watch.never_held_up(), qPrintable(QString::number(watch.longest_ms())));
}

QTEST_GUILESS_MAIN(StreamsTest)
#include "streams_test.moc"
