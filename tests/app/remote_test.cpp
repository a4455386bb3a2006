// Commands on another machine: the real `atoll control --stdio` behind an ssh that a test plays.
#include <sys/stat.h>

#include <QtTest>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/cli/remote/piped_process.h"
#include "net/base/file.h"
#include "net/control/control_server.h"
#include "net/control/home.h"
#include "net/control/ssh_host.h"
#include "tests/app/cli_run.h"

using namespace atl;
using atl::test::CliOutcome;
using atl::test::CliRun;
using atl::test::contains;

namespace {

class Remote {
 public:
  Remote() {
    ::signal(SIGPIPE, SIG_IGN);  // as the program does
    std::filesystem::create_directories(atoll.path("bin"));
    // As ssh does: what follows the host is the command.
    write("ssh", "echo \"$@\" >> '" + atoll.path("ssh-calls").string() +
                     "'\nwhile [ \"$1\" != -- ]; do shift; done\nshift 2\nexec \"$@\"");
    qputenv("PATH", QByteArray::fromStdString(atoll.path("bin").string() + ":" ATOLL_BIN_DIR ":" + path_));
    qunsetenv("ATOLL_PROGRAM");
  }
  ~Remote() { qputenv("PATH", QByteArray::fromStdString(path_)); }

  void write(const std::string& name, const std::string& script) const {
    std::ofstream(atoll.path("bin") / name) << "#!/bin/sh\n" << script << "\n";
    ::chmod((atoll.path("bin") / name).c_str(), 0755);
  }
  void join() const {
    std::filesystem::create_directories(atoll.path("island") / "state");
    JoinFile file;
    file.run_name = "gcide";
    if (!save_join_file(atoll.path("island") / "join.json", file).ok()) qFatal("join.json");
  }
  CliOutcome operator()(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--host", "ssh://me@node:2222"});
    return atoll(arguments);
  }

  CliRun atoll;

 private:
  const std::string path_ = qgetenv("PATH").toStdString();
};

class FakeAgent : public ControlService {
 public:
  Result<nlohmann::json> call(std::string_view method, const nlohmann::json&) override {
    if (method == "state.get") return nlohmann::json{{"state", "training"}};
    return Error{ErrorCode::kNotFound, "no such method"};
  }
};

// One answer of `atoll control --stdio` after another.
class Stdio {
 public:
  explicit Stdio(const std::string& home)
      : process_(*PipedProcess::spawn({.program = ATOLL_BIN_DIR "/atoll",
                                       .arguments = {"control", "--stdio", "--home", home},
                                       .environment = {}})) {}
  std::string ask(const std::string& line) {
    if (::write(process_.input.get(), (line + "\n").data(), line.size() + 1) < 0) return "";
    return next();
  }
  std::string next() {
    std::string answer;
    for (char c = 0; ::read(process_.output.get(), &c, 1) == 1 && c != '\n';) answer += c;
    return answer;
  }
  std::optional<int> end() {
    process_.input.reset();
    return process_.wait(Deadline::after(std::chrono::seconds(20)));
  }

 private:
  PipedProcess process_;
};

}  // namespace

class RemoteTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_host_is_a_name_and_nothing_else_data();
  void a_host_is_a_name_and_nothing_else();
  void ssh_is_called_with_the_host_behind_the_options();
  void what_the_command_prints_and_its_exit_code_come_here();
  void the_terminal_of_this_side_is_known_there();
  void ctrl_c_reaches_the_command();
  void an_invite_goes_by_standard_input();
  void failures_of_ssh_are_told_apart_data();
  void failures_of_ssh_are_told_apart();
  void methods_and_events_are_the_agents();
  void without_an_agent_its_methods_say_so();
  void garbage_ends_the_connection();
  void wrong_commands_are_refused_data();
  void wrong_commands_are_refused();
  void a_command_ends_when_its_client_goes();
};

void RemoteTest::a_host_is_a_name_and_nothing_else_data() {
  QTest::addColumn<QString>("host");
  QTest::addColumn<bool>("good");
  for (const char* host : {"ssh://node", "ssh://me@node.example.org", "ssh://me@10.0.0.7:22", "ssh://[2001:db8::1]:22",
                           "ssh://node/", "ssh://u-1@h_2"}) {
    QTest::newRow(host) << host << true;
  }
  for (const char* host : {"", "node", "http://node", "ssh://", "ssh://-oProxyCommand=x", "ssh://-l@node", "ssh://a b",
                           "ssh://me@-node", "ssh://node:0", "ssh://node:99999", "ssh://node:22x", "ssh://$(x)",
                           "ssh://a;b", "ssh://me@", "ssh://@node", "ssh://[::1", "ssh://[-x]:1", "ssh://node/path"}) {
    QTest::newRow(host) << host << false;
  }
}

void RemoteTest::a_host_is_a_name_and_nothing_else() {
  QFETCH(const QString, host);
  QFETCH(const bool, good);
  QCOMPARE(parse_ssh_host(host.toStdString()).ok(), good);
}

void RemoteTest::ssh_is_called_with_the_host_behind_the_options() {
  Remote remote;

  remote({"version"});

  const std::string calls = *read_file(remote.atoll.path("ssh-calls"));
  QVERIFY2(contains(calls, "-p 2222 -l me -- node atoll control --stdio"), calls.c_str());
}

void RemoteTest::what_the_command_prints_and_its_exit_code_come_here() {
  Remote remote;

  const CliOutcome version = remote({"version"}), status = remote({"status"}), wrong = remote({"dance"});

  QVERIFY2(version.exit_code == 0, version.err.c_str());
  QVERIFY(contains(version.out, "atoll "));
  QCOMPARE(status.exit_code, static_cast<int>(kExitNotJoined));
  QVERIFY2(contains(status.err, "has joined no run"), status.err.c_str());
  QCOMPARE(wrong.exit_code, static_cast<int>(kExitUsage));
}

void RemoteTest::the_terminal_of_this_side_is_known_there() {
  Remote remote;
  remote.write("program", "echo \"terminal $ATOLL_TERMINAL\"");
  qputenv("ATOLL_PROGRAM", QByteArray::fromStdString((remote.atoll.path("bin") / "program").string()));
  std::ostringstream out, err;
  Console console{out, err};
  console.out_is_terminal = console.color = true;
  console.columns = 123;

  QCOMPARE(run_cli({"--host=ssh://node", "status"}, console, remote.atoll.interrupt), 0);

  QCOMPARE(out.str(), std::string("terminal 1:123:1:0\n"));
}

void RemoteTest::ctrl_c_reaches_the_command() {
  Remote remote;
  remote.join();
  std::ofstream(remote.atoll.path("island") / "state" / "agent.log") << "2026-01-01T00:00:00.000 info first\n";
  std::jthread person([&] {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    remote.atoll.interrupt.raise("interrupted");
  });

  const CliOutcome outcome = remote({"logs", "-f"});

  QVERIFY2(contains(outcome.out, "info first"), outcome.err.c_str());
  QCOMPARE(outcome.exit_code, 0);  // as the command itself ends by Ctrl-C
}

void RemoteTest::an_invite_goes_by_standard_input() {
  Remote remote;
  const auto seen = remote.atoll.path("seen");
  remote.write("program", "echo \"$@\" > '" + seen.string() + "'; cat >> '" + seen.string() + "'");
  qputenv("ATOLL_PROGRAM", QByteArray::fromStdString((remote.atoll.path("bin") / "program").string()));
  std::ofstream(remote.atoll.path("invite.txt")) << "atoll1.fromfile.0\n";

  QCOMPARE(remote({"join", "atoll1.c2VjcmV0.0", "--yes"}).exit_code, 0);
  QCOMPARE(*read_file(seen), std::string("join --invite-stdin --yes\natoll1.c2VjcmV0.0"));
  QCOMPARE(remote({"join", "--invite-file", remote.atoll.path("invite.txt").string()}).exit_code, 0);
  QCOMPARE(*read_file(seen), std::string("join --invite-stdin\natoll1.fromfile.0\n"));

  QVERIFY(!contains(*read_file(remote.atoll.path("ssh-calls")), "atoll1."));
}

void RemoteTest::failures_of_ssh_are_told_apart_data() {
  QTest::addColumn<QString>("script");
  QTest::addColumn<int>("exit_code");
  QTest::addColumn<QString>("says");
  QTest::newRow("unreachable") << "exit 255" << static_cast<int>(kExitHubUnreachable) << "could not reach";
  QTest::newRow("no atoll") << "exit 127" << static_cast<int>(kExitOther) << "install it there";
  QTest::newRow("broken") << "echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"version\":1}}'"
                          << static_cast<int>(kExitOther) << "broke";
  QTest::newRow("newer") << "echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"version\":9}}'; sleep 5"
                         << static_cast<int>(kExitVersion) << "another version";
}

void RemoteTest::failures_of_ssh_are_told_apart() {
  QFETCH(const QString, script);
  QFETCH(const int, exit_code);
  QFETCH(const QString, says);
  Remote remote;
  remote.write("ssh", script.toStdString());

  const CliOutcome outcome = remote({"version"});

  QCOMPARE(outcome.exit_code, exit_code);
  QVERIFY2(contains(outcome.err, says.toStdString()), outcome.err.c_str());
}

void RemoteTest::methods_and_events_are_the_agents() {
  Remote remote;
  FakeAgent agent;
  auto server = ControlServer::start(remote.atoll.path("island") / "agent.sock", "atoll agent", agent);
  Stdio stdio(remote.atoll.path("island").string());

  QVERIFY(contains(stdio.ask(R"({"jsonrpc":"2.0","id":1,"method":"hello","params":{}})"), "atoll control"));
  QVERIFY(
      contains(stdio.ask(R"({"jsonrpc":"2.0","id":"x","method":"state.get","params":{}})"), R"("state":"training")"));
  (void)stdio.ask(R"({"jsonrpc":"2.0","id":3,"method":"events.subscribe","params":{"since":0}})");
  (*server)->publish("step", {{"loss", 1}});

  QVERIFY(contains(stdio.next(), R"("event":"step")"));
  QCOMPARE(*stdio.end(), 0);
}

void RemoteTest::without_an_agent_its_methods_say_so() {
  Remote remote;
  Stdio stdio(remote.atoll.path("island").string());

  const std::string answer = stdio.ask(R"({"jsonrpc":"2.0","id":1,"method":"state.get","params":{}})");

  QVERIFY2(contains(answer, "not_running"), answer.c_str());
}

void RemoteTest::garbage_ends_the_connection() {
  Remote remote;
  Stdio stdio(remote.atoll.path("island").string());

  const std::string answer = stdio.ask("GET / HTTP/1.1");

  QVERIFY2(contains(answer, "-32700"), answer.c_str());
  QCOMPARE(stdio.next(), std::string());
}

void RemoteTest::wrong_commands_are_refused_data() {
  QTest::addColumn<QString>("params");
  QTest::newRow("nothing") << "{}";
  QTest::newRow("no texts") << R"({"arguments":[1]})";
  QTest::newRow("in a circle") << R"({"arguments":["control","--stdio"]})";
  QTest::newRow("further away") << R"({"arguments":["--host=ssh://x","status"]})";
  QTest::newRow("input") << R"({"arguments":["version"],"input":5})";
}

void RemoteTest::wrong_commands_are_refused() {
  QFETCH(const QString, params);
  Remote remote;
  Stdio stdio(remote.atoll.path("island").string());

  const std::string answer =
      stdio.ask(R"({"jsonrpc":"2.0","id":1,"method":"command.run","params":)" + params.toStdString() + "}");

  QVERIFY2(contains(answer, "-32602"), answer.c_str());
}

void RemoteTest::a_command_ends_when_its_client_goes() {
  Remote remote;
  remote.join();
  std::ofstream(remote.atoll.path("island") / "state" / "agent.log") << "2026-01-01T00:00:00.000 info first\n";
  Stdio stdio(remote.atoll.path("island").string());
  const std::string run =
      R"({"jsonrpc":"2.0","id":1,"method":"command.run","params":{"arguments":["logs","-f","--home",")" +
      remote.atoll.path("island").string() + R"("]}})";
  QVERIFY(contains(stdio.ask(run), "command.output"));

  QCOMPARE(*stdio.end(), 0);  // it has waited for the command
}

QTEST_GUILESS_MAIN(RemoteTest)
#include "remote_test.moc"
