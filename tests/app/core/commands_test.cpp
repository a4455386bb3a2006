// Commands on a node's machine, here and by ssh as a test plays it, and a run that this machine organises, with the
// real `atoll`.
#include <sys/stat.h>

#include <QTemporaryDir>
#include <QtTest>
#include <csignal>
#include <fstream>

#include "app/core/child_leash.h"
#include "app/core/command_run.h"
#include "app/core/hub_model.h"
#include "app/core/streams.h"
#include "net/base/exit_code.h"
#include "net/wire/invite.h"
#include "tests/app/core/fake_agent.h"
#include "tests/app/core/loop_watch.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

constexpr const char* kAtoll = ATOLL_BIN_DIR "/atoll";
constexpr int kLimitMs = 60'000;  // for anything; a hang, not a slow machine

}  // namespace

class CommandsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    ::signal(SIGPIPE, SIG_IGN);
    path_ = qgetenv("PATH");
    qputenv("ATOLL_PROGRAM", kAtoll);
  }
  void init() { directory_ = std::make_unique<QTemporaryDir>(); }
  void cleanup() { qputenv("PATH", path_); }

  void a_command_runs_here_and_its_output_comes();
  void an_error_has_the_words_and_the_code_of_its_exit();
  void secrets_go_by_standard_input();
  void a_home_of_its_own_is_the_commands_too();
  void a_program_that_is_not_there_says_so();
  void output_that_is_no_json_is_said();
  void errors_are_told_line_by_line();
  void a_command_is_interrupted_with_its_asker();
  void a_command_runs_on_another_machine();
  void a_machine_that_cannot_be_reached_fails_the_command();

  void a_run_is_created_served_and_left_serving();
  void a_run_that_cannot_be_created_says_why();
  void a_hub_that_does_not_serve_says_why();

 private:
  std::filesystem::path path(const char* name) const {
    return std::filesystem::path(directory_->path().toStdString()) / name;
  }
  NodeAddress here() const { return LocalNode{agent_home_in(path("island"))}; }
  QString write_script(const char* name, const std::string& script) const {
    std::filesystem::create_directories(path("bin"));
    std::ofstream(path("bin") / name) << "#!/bin/sh\n" << script << "\n";
    ::chmod((path("bin") / name).c_str(), 0755);
    return QString::fromStdString((path("bin") / name).string());
  }
  HubHome hub_home() const { return HubHome{path("hub")}; }
  std::unique_ptr<HubModel> hub() const {
    return std::make_unique<HubModel>(hub_home(), open_socket(hub_home().control_socket()), make_run_command(here()));
  }

  std::unique_ptr<QTemporaryDir> directory_;
  QByteArray path_;
};

void CommandsTest::a_command_runs_here_and_its_output_comes() {
  std::optional<CommandOutcome> outcome;
  std::optional<nlohmann::json> json;

  run_to_end(make_run_command(here()), {.arguments = {"version"}}, this,
             [&](const auto& result) { outcome = *result; });
  run_json(make_run_command(here()), {.arguments = {"config", "path", "--json"}}, this,
           [&](const auto& result) { json = *result; });

  QTRY_VERIFY_WITH_TIMEOUT(outcome && json, kLimitMs);
  QCOMPARE(outcome->exit_code, 0);
  QVERIFY(outcome->output.startsWith("atoll "));
  QVERIFY(json->is_object());
}

void CommandsTest::an_error_has_the_words_and_the_code_of_its_exit() {
  std::optional<Error> usage, joined;

  run_json(make_run_command(here()), {.arguments = {"frobnicate"}}, this,
           [&](const auto& result) { usage = result.error(); });
  run_json(make_run_command(here()), {.arguments = {"export", "--output", "x"}}, this,
           [&](const auto& result) { joined = result.error(); });

  QTRY_VERIFY_WITH_TIMEOUT(usage && joined, kLimitMs);
  QCOMPARE(usage->code, ErrorCode::kInvalidArgument);
  QVERIFY2(usage->message.starts_with("there is no command 'frobnicate'"), usage->message.c_str());
  QCOMPARE(joined->code, ErrorCode::kNotJoined);
}

void CommandsTest::secrets_go_by_standard_input() {
  const QString program =
      write_script("atoll", "read line; printf '{\"read\":\"%s\",\"arguments\":\"%s\"}' \"$line\" \"$*\"");
  std::optional<nlohmann::json> json;

  run_json(make_run_command(here(), program), {.arguments = {"join", "--invite-stdin"}, .input = "secret\n"}, this,
           [&](const auto& result) { json = *result; });

  QTRY_VERIFY_WITH_TIMEOUT(json, kLimitMs);
  QCOMPARE(*json, (nlohmann::json{{"read", "secret"}, {"arguments", "join --invite-stdin"}}));
}

void CommandsTest::a_home_of_its_own_is_the_commands_too() {
  const QString program = write_script("atoll", "printf '\"%s\"' \"$ATOLL_HOME\"");
  std::optional<nlohmann::json> json;

  run_json(make_run_command(here(), program), {.arguments = {"status"}}, this,
           [&](const auto& result) { json = *result; });

  QTRY_VERIFY_WITH_TIMEOUT(json, kLimitMs);
  QCOMPARE(json->get<std::string>(), path("island").string());
}

void CommandsTest::a_program_that_is_not_there_says_so() {
  std::optional<Error> error;

  run_json(make_run_command(here(), "/no/such/atoll"), {.arguments = {"status"}}, this,
           [&](const auto& result) { error = result.error(); });

  QTRY_VERIFY_WITH_TIMEOUT(error, kLimitMs);
  QCOMPARE(error->code, ErrorCode::kNotFound);
  QVERIFY(error->message.find("/no/such/atoll") != std::string::npos);
}

void CommandsTest::output_that_is_no_json_is_said() {
  std::optional<Error> error;

  run_json(make_run_command(here()), {.arguments = {"version"}}, this,
           [&](const auto& result) { error = result.error(); });

  QTRY_VERIFY_WITH_TIMEOUT(error, kLimitMs);
  QCOMPARE(error->code, ErrorCode::kProtocol);
}

void CommandsTest::errors_are_told_line_by_line() {
  const QString program =
      write_script("atoll", "printf 'one\\ntw' >&2; sleep 0.2; printf 'o\\n\\natoll: last' >&2; exit 3");
  QStringList lines;
  std::optional<CommandOutcome> outcome;

  run_to_end(
      make_run_command(here(), program), {.arguments = {"x"}}, this, [&](const auto& result) { outcome = *result; },
      [&](const QString& line) { lines << line; });

  QTRY_VERIFY_WITH_TIMEOUT(outcome, kLimitMs);
  QCOMPARE(lines, (QStringList{"one", "two", ""}));
  QCOMPARE(outcome->error, std::string("last"));
  QCOMPARE(error_of(*outcome).code, ErrorCode::kNotRunning);
}

void CommandsTest::a_command_is_interrupted_with_its_asker() {
  const QString program =
      write_script("atoll", "trap 'echo interrupted > \"" + path("end").string() + "\"; exit 130' INT\necho ready > '" +
                                path("ready").string() + "'\nwhile true; do sleep 0.05; done");
  bool answered = false;
  auto asker = std::make_unique<QObject>();
  run_to_end(make_run_command(here(), program), {.arguments = {"x"}}, asker.get(),
             [&](const auto&) { answered = true; });
  QTRY_VERIFY_WITH_TIMEOUT(std::filesystem::exists(path("ready")), kLimitMs);
  test::LoopWatch watch;

  asker.reset();

  QTRY_VERIFY_WITH_TIMEOUT(std::filesystem::exists(path("end")), kLimitMs);
  QVERIFY(!answered);
  QVERIFY2(watch.never_held_up(), qPrintable(QString::number(watch.longest_ms())));
}

void CommandsTest::a_command_runs_on_another_machine() {
  write_script("ssh", "while [ \"$1\" != -- ]; do shift; done\nshift 2\nexec \"$@\"");
  qputenv("PATH", QByteArray::fromStdString(path("bin").string()) + ":" ATOLL_BIN_DIR ":" + path_);
  const RunCommand run = make_run_command(SshNode{"ssh://me@node"});
  std::optional<CommandOutcome> version;
  std::optional<Error> error;

  run_to_end(run, {.arguments = {"version"}}, this, [&](const auto& result) { version = *result; });
  run_json(run, {.arguments = {"frobnicate"}}, this, [&](const auto& result) { error = result.error(); });

  QTRY_VERIFY_WITH_TIMEOUT(version && error, kLimitMs);
  QCOMPARE(version->exit_code, 0);
  QVERIFY(version->output.startsWith("atoll "));
  QVERIFY2(error->message.starts_with("there is no command 'frobnicate'"), error->message.c_str());
}

void CommandsTest::a_machine_that_cannot_be_reached_fails_the_command() {
  write_script("ssh", "echo 'ssh: connect to host node port 22: No route to host' >&2; exit 255");
  qputenv("PATH", QByteArray::fromStdString(path("bin").string()) + ":" + path_);
  std::optional<Error> error;

  run_json(make_run_command(SshNode{"ssh://me@node"}), {.arguments = {"version"}}, this,
           [&](const auto& result) { error = result.error(); });

  QTRY_VERIFY_WITH_TIMEOUT(error, kLimitMs);
  QCOMPARE(error->code, ErrorCode::kUnreachable);
  QVERIFY(error->message.find("No route to host") != std::string::npos);
}

// ---- a run that this machine organises

void CommandsTest::a_run_is_created_served_and_left_serving() {
  std::filesystem::create_directories(path("text"));
  std::ofstream text(path("text") / "book.txt");
  for (int i = 0; i < 5000; ++i) text << "This is line " << i << " of a book about islands.\n";
  text.close();
  auto first = hub();
  first->start();
  QVERIFY(!first->exists() && !first->serving());
  RunPlan plan;
  plan.name = "first run";
  plan.text_directory = QString::fromStdString(path("text").string());
  plan.preset = "demo";
  plan.min_islands = 3;
  plan.inner_steps = 7;
  plan.listen = "127.0.0.1:0";

  first->create(plan);
  QVERIFY(first->busy() && !first->doing().isEmpty());
  QTRY_VERIFY_WITH_TIMEOUT(!first->busy(), kLimitMs);

  QVERIFY2(first->problem().empty(), first->problem().c_str());
  QVERIFY(first->exists() && first->serving());
  QTRY_VERIFY_WITH_TIMEOUT(first->state().has_value(), kLimitMs);
  QCOMPARE(first->state()->name, std::string("first run"));
  QCOMPARE(first->state()->inner_steps, 7u);
  QCOMPARE(first->state()->min_islands, 3u);

  std::optional<MadeInvite> invite;
  first->invite(5, "2h", [&](const auto& made) { invite = *made; });
  QTRY_VERIFY_WITH_TIMEOUT(invite, kLimitMs);
  QCOMPARE(invite->uses, 5u);
  const auto read = decode_invite(invite->link, std::chrono::sys_seconds(std::chrono::seconds(1)));
  QVERIFY(read.ok());
  QCOMPARE(read->run_name, std::string("first run"));

  std::optional<Error> wrong;
  first->invite(1, "soon", [&](const auto& made) { wrong = made.error(); });
  QTRY_VERIFY_WITH_TIMEOUT(wrong, kLimitMs);
  QCOMPARE(wrong->code, ErrorCode::kInvalidArgument);
  first->removeIsland("isl-0123456789abcdef");
  QTRY_VERIFY_WITH_TIMEOUT(!first->busy(), kLimitMs);
  QVERIFY(!first->problem().empty());

  // This app goes, the hub stays; the next one finds it.
  first.reset();
  auto second = hub();
  second->start();
  QTRY_VERIFY_WITH_TIMEOUT(second->serving() && second->state(), kLimitMs);
  second->stopServing();
  QTRY_VERIFY_WITH_TIMEOUT(!second->serving(), kLimitMs);
  second->serve();
  QTRY_VERIFY_WITH_TIMEOUT(!second->busy(), kLimitMs);
  QVERIFY2(second->serving(), second->problem().c_str());
  second->stopServing();
  QTRY_VERIFY_WITH_TIMEOUT(!second->serving(), kLimitMs);
}

void CommandsTest::a_run_that_cannot_be_created_says_why() {
  auto model = hub();
  RunPlan plan;
  plan.name = "none";
  plan.text_directory = QString::fromStdString(path("missing").string());

  model->create(plan);

  QTRY_VERIFY_WITH_TIMEOUT(!model->busy(), kLimitMs);
  QVERIFY2(model->problem().find("missing") != std::string::npos, model->problem().c_str());
  QVERIFY(!model->exists());
}

void CommandsTest::a_hub_that_does_not_serve_says_why() {
  std::filesystem::create_directories(path("hub"));
  std::ofstream(path("hub") / "run.json") << "{}";
  auto model = hub();
  model->start();

  model->serve();

  QVERIFY(model->busy());
  QTRY_VERIFY_WITH_TIMEOUT(!model->busy(), kLimitMs);
  QVERIFY(!model->serving());
  QVERIFY2(model->problem().find("does not serve") != std::string::npos, model->problem().c_str());
}

QTEST_GUILESS_MAIN(CommandsTest)
#include "commands_test.moc"
