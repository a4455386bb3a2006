// Every exit code of `atoll`, each by what causes it for a person: the program as a process of its own, against real
// hubs, agents and trainers. The codes are written out, for scripts rely on the numbers.
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <QtCore/QRegularExpression>
#include <QtTest/QTest>
#include <algorithm>
#include <csignal>
#include <fstream>
#include <set>
#include <thread>

#include "net/base/file.h"
#include "net/control/home.h"
#include "net/control/json_rpc.h"
#include "net/control/unix_socket.h"
#include "net/tls/identity.h"
#include "net/transport/socket.h"
#include "net/wire/invite.h"
#include "tests/fakes/enrol_server.h"
#include "tests/fakes/test_run.h"
#include "tests/process/agent_service.h"
#include "tests/process/private_mounts.h"
#include "tests/process/run_parts.h"
#include "tests/process/scene.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr uid_t kNobody = 65534;

struct Cause {
  const char* name;
  int exit_code;
  const char* words;  // in what it says
  ProgramOutcome (*run)(Scene& scene);
};

// ---- what causes are made of

// Ended by Ctrl-C once it has said so much on either of its outputs.
ProgramOutcome interrupted(QProcess& process, const char* words) {
  QByteArray out, err;
  const bool said = wait_for([&] {
    process.waitForReadyRead(50);
    out += process.readAllStandardOutput();
    err += process.readAllStandardError();
    return (out + err).contains(words) || process.state() == QProcess::NotRunning;
  });
  if (!said) qFatal("it never said '%s'", words);
  ::kill(static_cast<pid_t>(process.processId()), SIGINT);
  ProgramOutcome outcome = outcome_of(process);
  return {outcome.exit_code, out.toStdString() + outcome.out, err.toStdString() + outcome.err};
}

// An agent that serves its socket; the home has joined nothing.
std::unique_ptr<QProcess> start_agent(const Scene& scene, const std::string& home) {
  auto agent = scene.start({"agent", "--home", home});
  const bool serves = wait_for([&] { return scene.run({"stop", "--home", home}).exit_code == 0; });
  if (!serves) qFatal("the agent does not serve");
  return agent;
}

// The other end of a control socket of another version.
class FutureAgent {
 public:
  explicit FutureAgent(const std::filesystem::path& socket)
      : listener_(require(UnixListener::listen(socket))), thread_([this](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            pollfd waiting{listener_.fd(), POLLIN, 0};
            ::poll(&waiting, 1, 50);
            UniqueFd peer = listener_.accept();
            if (!peer) continue;
            const std::string hello = encode_response(1, nlohmann::json{{"version", 99}, {"program", "future"}});
            if (::send(peer.get(), hello.data(), hello.size(), MSG_NOSIGNAL) < 0) continue;
            peers_.push_back(std::move(peer));
          }
        }) {}

 private:
  UnixListener listener_;
  std::vector<UniqueFd> peers_;
  std::jthread thread_;
};

std::string invite_to(const TestRun& run, const std::vector<Address>& hub) {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  return require(encode_invite({.hub = hub,
                                .run_id = run.authority().run_id(),
                                .run_name = "test run",
                                .authority_pin = run.authority().pin(),
                                .id = "0123456789abcdef",
                                .secret = Bytes(32, std::byte{7}),
                                .expires = now + std::chrono::hours(1)}));
}

ProgramOutcome join(const Scene& scene, const std::string& invite) {
  return scene.run({"join", invite, "--home", scene.path("island").string()});
}

// On whichever machine: what may be opened is bounded by this process, and nothing else is amiss with the check.
ProgramOutcome check_with_open_files(const Scene& scene, rlim_t most) {
  return scene.run({"check", "--quick", "--strict"}, [most] {
    const rlimit limit{most, most};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  });
}

// ---- 0 to 5

ProgramOutcome version(Scene& scene) { return scene.run({"version"}); }

ProgramOutcome hub_until_ctrl_c(Scene& scene) {
  scene.make_hub();
  const auto hub = scene.start({"hub", "serve", "--home", scene.path("hub").string(), "--listen", "127.0.0.1:0"});
  return interrupted(*hub, "serves on port");
}

ProgramOutcome join_until_ctrl_c(Scene& scene) {
  const std::string home = scene.joined_home();
  scene.environment.insert("ATOLL_TRAINER", QString::fromStdString(scene.write_script("sleeps", "exec sleep 600")));
  const auto join = scene.start({"join", "--home", home});
  wait_for([&] { return scene.run({"status", "--home", home}).exit_code == 0; });
  return interrupted(*join, "back to run");
}

ProgramOutcome damaged_dataset(Scene& scene) {
  make_dataset(scene.path("text.txt"), scene.path("data"));
  for (const auto& file : std::filesystem::directory_iterator(scene.path("data"))) {
    std::ofstream(file.path()) << "no such thing";
  }
  return scene.run({"hub", "init", "--name", "test run", "--home", scene.path("hub").string(), "--data",
                    scene.path("data").string()});
}

ProgramOutcome wrong_flag(Scene& scene) { return scene.run({"status", "--loudly"}); }
ProgramOutcome no_such_command(Scene& scene) { return scene.run({"swim"}); }
ProgramOutcome damaged_invite(Scene& scene) { return join(scene, "atoll1.AAAA.00000000"); }

ProgramOutcome nothing_runs(Scene& scene) { return scene.run({"status", "--home", scene.joined_home()}); }
ProgramOutcome no_agent(Scene& scene) { return scene.run({"pause", "--home", scene.path("island").string()}); }
ProgramOutcome no_hub(Scene& scene) {
  scene.make_hub();
  return scene.run({"hub", "status", "--home", scene.path("hub").string()});
}

ProgramOutcome status_before_joining(Scene& scene) { return scene.run({"status"}); }
ProgramOutcome join_without_invite(Scene& scene) { return scene.run({"join"}); }

ProgramOutcome socket_of_somebody_else(Scene& scene) {
  const std::string home = scene.path("theirs").string();
  const auto agent = start_agent(scene, home);
  ::chmod(home.c_str(), 0);
  std::filesystem::permissions(scene.path(""), std::filesystem::perms(0711));
  ProgramOutcome outcome = scene.run({"status", "--home", home}, [] {
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(99);  // root may open anything
  });
  ::chmod(home.c_str(), 0700);
  ::kill(static_cast<pid_t>(agent->processId()), SIGTERM);
  (void)outcome_of(*agent);
  return outcome;
}

ProgramOutcome second_agent(Scene& scene) {
  const std::string home = scene.path("island").string();
  const auto first = start_agent(scene, home);
  ProgramOutcome outcome = scene.run({"agent", "--home", home});
  ::kill(static_cast<pid_t>(first->processId()), SIGTERM);
  (void)outcome_of(*first);
  return outcome;
}

ProgramOutcome removed_island(Scene& scene) {
  const std::string home = scene.joined_home();
  const std::string id = require(load_identity(IslandHome{home}.identity())).name.value;
  (void)scene.run({"hub", "remove", id, "--home", scene.path("hub").string()});
  return scene.run({"join", "--home", home});
}

// ---- 6 to 9

ProgramOutcome too_few_open_files(Scene& scene) { return check_with_open_files(scene, 1024); }
ProgramOutcome few_open_files(Scene& scene) { return check_with_open_files(scene, 8192); }
ProgramOutcome join_of_an_unfit_machine(Scene& scene) {
  scene.make_hub();
  scene.serve_hub();
  return scene.run({"join", scene.invite(), "--home", scene.path("island").string()}, [] {
    const rlimit limit{1024, 1024};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  });
}

ProgramOutcome expired_invite(Scene& scene) {
  scene.make_hub();
  scene.serve_hub();
  const std::string invite = scene.invite({"--expires", "1s"});
  wait_for([&] {
    return !decode_invite(invite, std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now())).ok();
  });
  return join(scene, invite);
}

ProgramOutcome used_invite(Scene& scene) {
  (void)scene.joined_home();
  const std::string invite = scene.invite();
  scene.environment.insert("ATOLL_TRAINER", QString::fromStdString(scene.path("ends-at-once").string()));
  (void)scene.run({"join", invite, "--home", scene.path("first").string()});
  return scene.run({"join", invite, "--home", scene.path("second").string()});
}

// Made after the backup from which the hub was restored.
ProgramOutcome unknown_invite(Scene& scene) {
  scene.make_hub();
  scene.serve_hub();
  const std::string file = scene.path("hub.tar").string();
  (void)scene.run({"hub", "backup", file, "--home", scene.path("hub").string()});
  const std::string invite = scene.invite();
  scene.end_hub();
  (void)scene.run({"hub", "restore", file, "--home", scene.path("restored").string()});
  scene.serve_hub("restored");
  return join(scene, invite);
}

ProgramOutcome invite_of_another_run(Scene& scene) {
  const std::string home = scene.joined_home();
  scene.end_hub();
  scene.make_hub("other hub");
  scene.serve_hub("other hub");
  return scene.run({"join", scene.invite({}, "other hub"), "--home", home});
}

ProgramOutcome impostor(Scene& scene) {
  const TestRun run, other(run.authority().run_id());
  const EnrolServer server(other.hub(), [](const EnrolRequest&) { return Error{ErrorCode::kInternal, "asked"}; });
  return join(scene, invite_to(run, {server.address()}));
}

// ---- 10 to 13, and 130

ProgramOutcome hub_gone(Scene& scene) {
  scene.make_hub();
  scene.serve_hub();
  const std::string invite = scene.invite();
  scene.end_hub();
  return join(scene, invite);
}

ProgramOutcome no_such_host(Scene& scene) {
  return join(scene, invite_to(TestRun(), {{"no-such-host.invalid", 47000}}));
}

// Something that speaks first, as a mail server does.
ProgramOutcome hub_without_tls(Scene& scene) {
  const UniqueFd listening = require(listen_tcp({"127.0.0.1", 0}));
  std::jthread server([fd = listening.get()](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      pollfd waiting{fd, POLLIN, 0};
      ::poll(&waiting, 1, 50);
      const UniqueFd peer(::accept(fd, nullptr, nullptr));
      if (peer) (void)::send(peer.get(), "220 mail\r\n", 10, MSG_NOSIGNAL);
    }
  });
  return join(scene, invite_to(TestRun(), {{"127.0.0.1", local_port(listening.get())}}));
}

ProgramOutcome newer_agent(Scene& scene) {
  const FutureAgent agent(agent_home_in(scene.path("island")).socket);
  return scene.run({"status", "--home", scene.path("island").string()});
}

ProgramOutcome newer_hub(Scene& scene) {
  const TestRun run;
  const EnrolServer server(run.hub(), [](const EnrolRequest&) {
    return Error{ErrorCode::kVersionUnsupported, "the island enrols with version 1, this hub with version 2"};
  });
  return join(scene, invite_to(run, {server.address()}));
}

ProgramOutcome newer_invite(Scene& scene) { return join(scene, "atoll2.AAAA.00000000"); }

ProgramOutcome newer_home(Scene& scene) {
  const std::string home = scene.joined_home();
  std::ofstream(IslandHome{home}.join_file()) << R"({"version": 99})";
  return scene.run({"join", "--home", home});
}

// SIGSTOP takes a while until the last thread.
bool is_stopped(pid_t pid) {
  const std::filesystem::directory_iterator threads("/proc/" + std::to_string(pid) + "/task");
  return std::ranges::all_of(threads, [](const auto& thread) {
    std::ifstream file(thread.path() / "stat");
    std::string stat;
    std::getline(file, stat);
    return stat.find(") T ") != std::string::npos;
  });
}

ProgramOutcome stopped_agent(Scene& scene) {
  const std::string home = scene.path("island").string();
  const auto agent = start_agent(scene, home);
  const auto pid = static_cast<pid_t>(agent->processId());
  ::kill(pid, SIGSTOP);
  if (!wait_for([&] { return is_stopped(pid); })) qFatal("the agent does not stop");
  ProgramOutcome outcome = scene.run({"status", "--home", home});
  ::kill(pid, SIGKILL);
  (void)outcome_of(*agent);
  return outcome;
}

ProgramOutcome no_trainer(Scene& scene) {
  const std::string home = scene.joined_home();
  scene.environment.insert("ATOLL_TRAINER", QString::fromStdString(scene.path("no-such-program").string()));
  return scene.run({"join", "--home", home});
}

// The real trainer, which finds a file where the run's data should be.
ProgramOutcome trainer_without_data(Scene& scene) {
  const std::string home = scene.joined_home();
  std::ofstream(IslandHome{home}.data()) << "no directory";
  return scene.run({"join", "--home", home});
}

ProgramOutcome trainer_that_dies(Scene& scene) {
  scene.environment.insert("ATOLL_TRAINER", QString::fromStdString(scene.write_script("dies", "kill -SEGV $$")));
  return scene.run({"sample", "--model", scene.path("").string()});
}

ProgramOutcome ctrl_c(Scene& scene) {
  const std::string trainer = scene.write_script("sleeps", "echo begun; exec sleep 600");
  scene.environment.insert("ATOLL_TRAINER", QString::fromStdString(trainer));
  const auto sample = scene.start({"sample", "--model", scene.path("").string()});
  return interrupted(*sample, "begun");
}

const Cause kCauses[] = {
    {"version", 0, "atoll ", version},
    {"a hub that serves until Ctrl-C", 0, "hub stopped", hub_until_ctrl_c},
    {"a join that trains until Ctrl-C", 0, "stopping ...", join_until_ctrl_c},
    {"a damaged dataset", 1, "manifest", damaged_dataset},
    {"a wrong flag", 2, "--loudly", wrong_flag},
    {"no such command", 2, "there is no command 'swim'", no_such_command},
    {"a damaged invite", 2, "invite", damaged_invite},
    {"nothing runs", 3, "nothing is running; start it with: atoll join", nothing_runs},
    {"no agent", 3, "no agent is running; start one", no_agent},
    {"the hub does not serve", 3, "start it with: atoll hub serve", no_hub},
    {"status before joining", 4, "has joined no run", status_before_joining},
    {"join without an invite", 4, "get an invite", join_without_invite},
    {"the control socket of somebody else", 5, "Permission denied", socket_of_somebody_else},
    {"a second agent", 5, "another process serves", second_agent},
    {"an island that was removed", 5, "come back with another invite", removed_island},
    {"a check that fails", 6, "FAIL host.nofile", too_few_open_files},
    {"a join of a machine that fails the check", 6, "fails 1 row", join_of_an_unfit_machine},
    {"a check that warns, with --strict", 7, "WARN host.nofile", few_open_files},
    {"an expired invite", 8, "expired", expired_invite},
    {"a used invite", 8, "used", used_invite},
    {"an unknown invite", 8, "not know", unknown_invite},
    {"an invite of another run", 8, "belongs to run", invite_of_another_run},
    {"another authority at the hub's address", 9, "not the one in the invite", impostor},
    {"a hub that is gone", 10, "cannot reach the hub", hub_gone},
    {"a host without an address", 10, "no-such-host.invalid", no_such_host},
    {"a port without TLS", 10, "does not speak TLS", hub_without_tls},
    {"an agent of another version", 11, "another version of the control protocol", newer_agent},
    {"a hub of another version", 11, "this hub with version 2", newer_hub},
    {"an invite of another version", 11, "version", newer_invite},
    {"a home of another version", 11, "use the Atoll that wrote it", newer_home},
    {"an agent that does not answer", 12, "no answer from", stopped_agent},
    {"a trainer that is not there", 13, "no-such-program", no_trainer},
    {"a trainer that ends with an error", 13, "data", trainer_without_data},
    {"a trainer that dies", 13, "atoll-trainer died (status 139)", trainer_that_dies},
    {"a sample cut short by Ctrl-C", 130, "begun", ctrl_c},
};

}  // namespace

class ExitCodeTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_cause_has_its_exit_code_data();
  void every_cause_has_its_exit_code();
  void a_full_disk_is_exit_code_1_and_says_so();
  void help_and_README_list_every_exit_code();
};

void ExitCodeTest::every_cause_has_its_exit_code_data() {
  QTest::addColumn<const Cause*>("cause");
  for (const Cause& cause : kCauses) {
    QTest::newRow(qPrintable(QString("%1: %2").arg(cause.exit_code).arg(cause.name))) << &cause;
  }
}

void ExitCodeTest::every_cause_has_its_exit_code() {
  QFETCH(const Cause*, cause);
  Scene scene;

  const ProgramOutcome outcome = cause->run(scene);

  const std::string said = outcome.out + outcome.err;
  QVERIFY2(outcome.exit_code == cause->exit_code, qPrintable(QString("%1: ").arg(outcome.exit_code) + said.c_str()));
  QVERIFY2(said.find(cause->words) != std::string::npos, said.c_str());
}

void ExitCodeTest::a_full_disk_is_exit_code_1_and_says_so() {
  if (const auto reason = enter_private_mounts()) QSKIP(reason->c_str());
  const Scene scene;
  make_dataset(scene.path("text.txt"), scene.path("data"));
  std::filesystem::create_directory(scene.path("disk"));
  const SmallDisk disk(scene.path("disk"), 1 << 20);
  disk.fill();

  const ProgramOutcome outcome = scene.run(
      {"data", "prepare", scene.path("text.txt").string(), "--output", (scene.path("disk") / "data").string()});

  QCOMPARE(outcome.exit_code, 1);
  QVERIFY2(outcome.err.find("No space left") != std::string::npos, outcome.err.c_str());
  QVERIFY2(outcome.err.find("free some space") != std::string::npos, outcome.err.c_str());
}

void ExitCodeTest::help_and_README_list_every_exit_code() {
  std::set<int> caused;
  for (const Cause& cause : kCauses) caused.insert(cause.exit_code);
  // "7 check warned; 8 invite expired": a number, then its words.
  const auto listed = [](const QString& text) {
    std::set<int> codes;
    auto found = QRegularExpression("\\b(\\d+) [a-z]").globalMatch(text);
    while (found.hasNext()) codes.insert(found.next().captured(1).toInt());
    return codes;
  };
  const QString help = QString::fromStdString(Scene().run({"--help"}).out);
  const QString readme =
      QString::fromStdString(require(read_file(std::filesystem::path(ATOLL_TEST_DATA_DIR) / "../../README.md")));

  QCOMPARE(listed(help.section("Exit codes:", 1)), caused);
  QCOMPARE(listed(readme.section("## Exit codes", 1).section("##", 0, 0)), caused);
}

QTEST_GUILESS_MAIN(ExitCodeTest)
#include "exit_code_test.moc"
