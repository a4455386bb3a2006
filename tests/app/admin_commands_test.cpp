// Looking after a hub, the service, and what the shell knows of the commands.
#include <sys/stat.h>
#include <unistd.h>

#include <QProcess>
#include <QRegularExpression>
#include <QStandardPaths>
#include <QtTest>
#include <atomic>
#include <nlohmann/json.hpp>

#include "app/cli/service/service_install.h"
#include "net/base/file.h"
#include "net/control/control_server.h"
#include "net/control/home.h"
#include "net/control/hub_state.h"
#include "net/enrol/client.h"
#include "net/hub/hub_store.h"
#include "net/wire/invite.h"
#include "tests/app/cli_run.h"

using namespace atl;
using atl::test::CliOutcome;
using atl::test::CliRun;
using atl::test::contains;

namespace {

// Of a run of one round.
class OneRoundHub final : public ControlService {
 public:
  Result<nlohmann::json> call(std::string_view method, const nlohmann::json&) override {
    if (method != "state.get") return Error{ErrorCode::kInvalidArgument, "it was asked"};
    HubState state;
    state.name = "first";
    state.max_rounds = 1;
    state.outer_step = finished ? 1 : 0;
    state.finished = finished;
    return state.to_json();
  }
  std::atomic<bool> finished{false};
};

// systemd as far as the service's commands ask it.
class FakeSystemd {
 public:
  RunProgram run() {
    return [this](const std::vector<std::string>& command) -> Result<ProgramOutcome> {
      std::string line;
      for (const std::string& word : command) line += (line.empty() ? "" : " ") + word;
      calls.push_back(line);
      if (contains(line, fails) && !fails.empty()) return ProgramOutcome{1, failure};
      if (contains(line, "enable-linger")) linger = true;
      if (contains(line, "disable-linger")) linger = false;
      if (contains(line, "show-user")) return ProgramOutcome{0, linger ? "Linger=yes" : "Linger=no"};
      if (contains(line, "is-active")) return ProgramOutcome{0, "active"};
      if (contains(line, "is-enabled")) return ProgramOutcome{0, "enabled"};
      if (contains(line, "FragmentPath")) return ProgramOutcome{0, packaged};
      return ProgramOutcome{0, ""};
    };
  }
  bool called(const std::string& part) const {
    return std::any_of(calls.begin(), calls.end(), [&](const std::string& call) { return contains(call, part); });
  }
  std::vector<std::string> calls;
  bool linger = false;
  std::string packaged;  // the unit of a package
  std::string fails, failure = "it went wrong";
};

ServiceInstallOptions service(bool may_linger) {
  return {.unit = {.scope = ServiceScope::kUser, .program = "/usr/bin/atoll", .home = ""},
          .may_linger = [may_linger]() -> Result<bool> { return may_linger; }};
}

class ConfigHome {
 public:
  ConfigHome() { qputenv("XDG_CONFIG_HOME", directory_.path().toUtf8()); }
  ~ConfigHome() { qunsetenv("XDG_CONFIG_HOME"); }

 private:
  QTemporaryDir directory_;
};

std::string enrolled_island(CliRun& atoll) {
  const auto invite =
      decode_invite(atoll.invite, std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()));
  const auto enrolment = enrol(*invite, "attic", Deadline::after(std::chrono::seconds(20)));
  if (!enrolment.ok()) qFatal("%s", enrolment.error().message.c_str());
  return enrolment->identity.name.value;
}

}  // namespace

class AdminCommandsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_island_is_listed_and_removed();
  void an_island_is_removed_by_its_name_where_one_alone_has_it();
  void who_is_removed_may_come_back_by_an_open_invite_and_that_is_said();
  void going_back_to_where_the_run_is_does_nothing();
  void an_invite_is_listed_and_taken_back();
  void a_hub_comes_back_from_its_backup();
  void a_backup_in_a_directory_is_named_by_run_and_time();
  void what_no_round_could_follow_is_refused();
  void what_is_no_backup_is_refused_data();
  void what_is_no_backup_is_refused();
  void a_dataset_may_move_but_not_change();
  void a_service_is_installed_and_removed_without_a_trace();
  void a_packages_service_is_known_and_left_to_the_package();
  void a_service_may_wait_for_the_next_boot();
  void lingering_that_was_on_stays_on();
  void a_service_that_does_not_start_leaves_nothing_behind();
  void a_unit_of_somebody_else_is_left_alone();
  void the_unit_is_what_systemd_accepts();
  void systemd_itself_finds_no_fault_with_the_units_data();
  void systemd_itself_finds_no_fault_with_the_units();
  void a_system_service_gets_its_user_and_directories();
  void a_path_in_a_unit_is_taken_literally();
  void a_shell_completes_commands_and_flags_data();
  void a_shell_completes_commands_and_flags();
  void every_shell_gets_every_command_data();
  void every_shell_gets_every_command();
  void every_command_has_a_man_page();
};

void AdminCommandsTest::an_island_is_listed_and_removed() {
  CliRun atoll;
  const std::string home = atoll.path("hub-first").string();
  const auto hub = atoll.start_hub();
  const std::string island = enrolled_island(atoll);

  const CliOutcome list = atoll({"hub", "islands", "--home", home});
  QVERIFY2(contains(list.out, island) && contains(list.out, "attic"), list.out.c_str());
  QCOMPARE(atoll({"hub", "remove", island, "--home", home}).exit_code, 0);

  const CliOutcome json = atoll({"hub", "islands", "--json", "--home", home});
  QCOMPARE(nlohmann::json::parse(json.out)["islands"][0]["state"].get<std::string>(), std::string("removed"));
  QCOMPARE(atoll({"hub", "remove", "isl-none", "--home", home}).exit_code, static_cast<int>(kExitOther));
}

void AdminCommandsTest::an_island_is_removed_by_its_name_where_one_alone_has_it() {
  CliRun atoll;
  const std::string home = atoll.path("hub-first").string();
  const auto hub = atoll.start_hub();
  const auto another_invite = [&] {
    atoll.invite = atoll({"hub", "invite", "--home", home}).out;
    return enrolled_island(atoll);
  };
  const std::string first = enrolled_island(atoll), second = another_invite();

  const CliOutcome which = atoll({"hub", "remove", "attic", "--home", home});
  QCOMPARE(which.exit_code, static_cast<int>(kExitUsage));
  QVERIFY2(contains(which.err, first) && contains(which.err, second), which.err.c_str());
  QCOMPARE(atoll({"hub", "remove", first, "--yes", "--home", home}).exit_code, 0);

  const CliOutcome removed = atoll({"hub", "remove", "attic", "--json", "--home", home});
  QCOMPARE(nlohmann::json::parse(removed.out)["island"].get<std::string>(), second);
  const CliOutcome again = atoll({"hub", "remove", "attic", "--home", home});
  QVERIFY2(contains(again.err, "attic was removed already"), again.err.c_str());
  const CliOutcome nobody = atoll({"hub", "remove", "cellar", "--home", home});
  QVERIFY2(contains(nobody.err, "no island has the id or the name 'cellar'"), nobody.err.c_str());
}

void AdminCommandsTest::who_is_removed_may_come_back_by_an_open_invite_and_that_is_said() {
  CliRun atoll;
  const std::string home = atoll.path("hub-first").string();
  const auto hub = atoll.start_hub();
  const std::string first = enrolled_island(atoll);
  const CliOutcome none = atoll({"hub", "remove", first, "--home", home});
  atoll.invite = atoll({"hub", "invite", "--uses", "3", "--home", home}).out;
  const std::string second = enrolled_island(atoll);

  const CliOutcome one = atoll({"hub", "remove", second, "--home", home});
  const CliOutcome json = atoll({"hub", "remove", second, "--json", "--home", home});

  QVERIFY2(!contains(none.out, "invite"), none.out.c_str());
  QVERIFY2(contains(one.out, "1 invite is still open") && contains(one.out, "atoll hub invites revoke ID"),
           one.out.c_str());
  QCOMPARE(nlohmann::json::parse(json.out)["open_invites"].get<int>(), 1);
}

void AdminCommandsTest::going_back_to_where_the_run_is_does_nothing() {
  CliRun atoll;
  const std::string home = atoll.path("hub-first").string();
  const auto hub = atoll.start_hub();
  class Control final : public ControlService {
   public:
    explicit Control(HubServer& hub) : hub_(hub) {}
    Result<nlohmann::json> call(std::string_view method, const nlohmann::json&) override {
      if (method == "state.get") return hub_.state().to_json();
      return Error{ErrorCode::kInternal, "asked to " + std::string(method)};
    }

   private:
    HubServer& hub_;
  } control(*hub);
  const auto server = ControlServer::start(HubHome{home}.control_socket(), "atoll-hub", control);
  QVERIFY(server.ok());

  const CliOutcome there = atoll({"hub", "rollback", "--to", "0", "--home", home});
  const CliOutcome json = atoll({"hub", "rollback", "--to", "0", "--json", "--home", home});
  const CliOutcome ahead = atoll({"hub", "rollback", "--to", "3", "--yes", "--home", home});

  QCOMPARE(there.exit_code, 0);
  QVERIFY2(contains(there.out, "nothing to do: the run is at the state before round 1 already"), there.out.c_str());
  QCOMPARE(nlohmann::json::parse(json.out)["outer_step"].get<int>(), 0);
  QVERIFY2(contains(ahead.err, "asked to run.rollback"), ahead.err.c_str());  // the hub says what is wrong with it
}

void AdminCommandsTest::an_invite_is_listed_and_taken_back() {
  CliRun atoll;
  const std::string home = atoll.path("hub-first").string();
  const auto hub = atoll.start_hub();
  const auto invites = [&] {
    return nlohmann::json::parse(atoll({"hub", "invites", "--json", "--home", home}).out)["invites"];
  };
  const std::string id = invites()[0]["id"].get<std::string>();
  QCOMPARE(invites()[0]["state"].get<std::string>(), std::string("open"));
  QVERIFY(contains(atoll({"hub", "invites", "--home", home}).out, id));

  QCOMPARE(atoll({"hub", "invites", "revoke", id, "--home", home}).exit_code, 0);

  QCOMPARE(invites()[0]["state"].get<std::string>(), std::string("revoked"));
  const auto invite =
      decode_invite(atoll.invite, std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()));
  const auto refused = enrol(*invite, "attic", Deadline::after(std::chrono::seconds(20)));
  QCOMPARE(refused.error().code, ErrorCode::kInviteExpired);
  QVERIFY2(contains(refused.error().message, "taken back"), refused.error().message.c_str());
  const CliOutcome unknown = atoll({"hub", "invites", "revoke", "nobody", "--home", home});
  QCOMPARE(unknown.exit_code, static_cast<int>(kExitOther));
  QVERIFY2(contains(unknown.err, "there is no invite nobody"), unknown.err.c_str());
}

void AdminCommandsTest::a_hub_comes_back_from_its_backup() {
  CliRun atoll;
  const std::string home = atoll.path("hub-first").string(), file = atoll.path("hub.tar").string();
  auto hub = atoll.start_hub();
  const std::string island = enrolled_island(atoll);

  const CliOutcome saved = atoll({"hub", "backup", file, "--home", home});
  QVERIFY2(saved.exit_code == 0, saved.err.c_str());
  struct stat info {};
  QVERIFY(::stat(file.c_str(), &info) == 0 && (info.st_mode & 0777) == 0600);
  const CliOutcome again = atoll({"hub", "backup", file, "--home", home});
  QCOMPARE(again.exit_code, static_cast<int>(kExitUsage));
  QVERIFY2(contains(again.err, "--force"), again.err.c_str());
  std::filesystem::resize_file(file, 100);
  QCOMPARE(atoll({"hub", "backup", file, "--force", "--home", home}).exit_code, 0);
  QCOMPARE(atoll({"hub", "restore", file, "--home", home}).exit_code, static_cast<int>(kExitUsage));
  hub.reset();
  const std::string other = atoll.path("hub-restored").string();
  const CliOutcome restored = atoll({"hub", "restore", file, "--home", other});
  QVERIFY2(restored.exit_code == 0, restored.err.c_str());

  QVERIFY(contains(atoll({"hub", "islands", "--home", other}).out, island));
  QCOMPARE(atoll({"hub", "config", "--home", other}).out, atoll({"hub", "config", "--home", home}).out);
  QVERIFY(HubServer::start({.directory = other, .listen = {"127.0.0.1", 0}, .advertised = {}}, {}).ok());
}

void AdminCommandsTest::a_backup_in_a_directory_is_named_by_run_and_time() {
  CliRun atoll;
  const auto hub = atoll.start_hub();
  const std::filesystem::path directory = atoll.path("backups");
  std::filesystem::create_directory(directory);

  const CliOutcome saved =
      atoll({"hub", "backup", directory.string(), "--force", "--home", atoll.path("hub-first").string()});

  QVERIFY2(saved.exit_code == 0, saved.err.c_str());
  QCOMPARE(std::distance(std::filesystem::directory_iterator(directory), {}), std::ptrdiff_t{1});
  const std::string file = std::filesystem::directory_iterator(directory)->path().string();
  static const QRegularExpression kName("/hub-first-\\d{4}-\\d\\d-\\d\\d-\\d{6}\\.tar$");
  QVERIFY2(kName.match(QString::fromStdString(file)).hasMatch(), file.c_str());
  QVERIFY2(contains(saved.out, file), saved.out.c_str());
  QCOMPARE(atoll({"hub", "restore", file, "--home", atoll.path("restored").string()}).exit_code, 0);
}

void AdminCommandsTest::what_no_round_could_follow_is_refused() {
  CliRun atoll;
  const auto hub = atoll.start_hub();
  const HubHome home{atoll.path("hub-first")};
  OneRoundHub service;
  const auto control = ControlServer::start(home.control_socket(), "atoll-hub", service);
  QVERIFY(control.ok());
  const auto mixture = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"hub", "mixture", "--home", home.directory.string(), "--weights", "web=1"});
    return atoll(more);
  };
  const CliOutcome late = mixture({"--from-round", "2"});
  const CliOutcome early = mixture({});

  service.finished = true;
  const CliOutcome refused = mixture({});
  const CliOutcome decay = atoll({"hub", "decay", "--home", home.directory.string(), "--rounds", "5"});

  QVERIFY2(late.exit_code == kExitUsage && contains(late.err, "never comes"), late.err.c_str());
  QVERIFY2(contains(early.err, "it was asked"), early.err.c_str());
  for (const CliOutcome& outcome : {refused, decay}) {
    QCOMPARE(outcome.exit_code, static_cast<int>(kExitUsage));
    QVERIFY2(contains(outcome.err, "is finished, after 1 round"), outcome.err.c_str());
  }
}

void AdminCommandsTest::what_is_no_backup_is_refused_data() {
  QTest::addColumn<int>("keep");
  QTest::addColumn<int>("damage");
  QTest::newRow("cut") << 20'000 << -1;
  QTest::newRow("empty") << 0 << -1;
  QTest::newRow("a header") << -1 << 10;
  QTest::newRow("the size") << -1 << 130;
}

void AdminCommandsTest::what_is_no_backup_is_refused() {
  QFETCH(const int, keep);
  QFETCH(const int, damage);
  CliRun atoll;
  const std::string file = atoll.path("hub.tar").string();
  const auto hub = atoll.start_hub();
  QCOMPARE(atoll({"hub", "backup", file, "--home", atoll.path("hub-first").string()}).exit_code, 0);
  if (keep >= 0) std::filesystem::resize_file(file, static_cast<std::uintmax_t>(keep));
  if (damage >= 0) std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(damage).put('\x7f');

  const CliOutcome restored = atoll({"hub", "restore", file, "--home", atoll.path("new").string()});

  QCOMPARE(restored.exit_code, static_cast<int>(kExitOther));
  QVERIFY(!std::filesystem::exists(atoll.path("new")));
}

void AdminCommandsTest::a_dataset_may_move_but_not_change() {
  CliRun atoll;
  const std::string home = atoll.path("hub-first").string();
  const auto hub = atoll.start_hub();
  std::filesystem::copy(atoll.path("data"), atoll.path("moved"));
  std::ofstream(atoll.path("other.txt")) << *read_file(atoll.path("book.txt")) << "one more line\n";
  atoll({"data", "prepare", atoll.path("other.txt").string(), "--output", atoll.path("other").string()});

  const CliOutcome moved = atoll({"hub", "data", atoll.path("moved").string(), "--home", home});
  const CliOutcome other = atoll({"hub", "data", atoll.path("other").string(), "--home", home});

  QVERIFY2(moved.exit_code == 0, moved.err.c_str());
  QCOMPARE(other.exit_code, static_cast<int>(kExitUsage));
  QCOMPARE(atoll({"hub", "data", "--home", home}).out, atoll.path("moved").string() + "\n");
}

void AdminCommandsTest::a_service_is_installed_and_removed_without_a_trace() {
  ConfigHome config;
  FakeSystemd systemd;

  const auto installed = install_service(service(true), systemd.run());
  QVERIFY2(installed.ok(), installed.ok() ? "" : installed.error().message.c_str());
  QVERIFY(installed->lingering_set && systemd.linger);
  QVERIFY(systemd.called("systemctl --user enable --now atoll.service"));
  QVERIFY(service_status(ServiceScope::kUser, systemd.run())->installed);
  QVERIFY(install_service(service(false), systemd.run()).ok());  // again: as if it were the first time

  QVERIFY(remove_service(ServiceScope::kUser, systemd.run()).ok());

  QVERIFY(!systemd.linger);
  QVERIFY(systemd.called("disable --now"));
  QVERIFY(!std::filesystem::exists(installed->unit));
  QCOMPARE(remove_service(ServiceScope::kUser, systemd.run()).error().code, ErrorCode::kNotFound);
}

void AdminCommandsTest::a_packages_service_is_known_and_left_to_the_package() {
  ConfigHome config;
  FakeSystemd systemd;
  QVERIFY(!service_status(ServiceScope::kSystem, systemd.run())->installed);
  systemd.packaged = "/usr/lib/systemd/system/atoll.service";

  const auto status = service_status(ServiceScope::kSystem, systemd.run());

  QVERIFY(status->installed && status->enabled);
  QCOMPARE(status->unit.string(), systemd.packaged);
  const Status removed = remove_service(ServiceScope::kUser, systemd.run());
  QVERIFY(contains(removed.error().message, "systemctl --user disable --now atoll"));
}

void AdminCommandsTest::a_service_may_wait_for_the_next_boot() {
  ConfigHome config;
  FakeSystemd systemd;
  ServiceInstallOptions options = service(false);
  options.start = false;  // another agent runs now

  QVERIFY(install_service(options, systemd.run()).ok());

  QVERIFY(systemd.called("systemctl --user enable atoll.service"));
  QVERIFY(!systemd.called("--now"));
}

void AdminCommandsTest::lingering_that_was_on_stays_on() {
  ConfigHome config;
  FakeSystemd systemd;
  systemd.linger = true;

  QVERIFY(install_service(service(true), systemd.run()).ok());
  QVERIFY(remove_service(ServiceScope::kUser, systemd.run()).ok());

  QVERIFY(systemd.linger);
}

void AdminCommandsTest::a_service_that_does_not_start_leaves_nothing_behind() {
  ConfigHome config;
  FakeSystemd systemd;
  systemd.fails = "enable --now";
  systemd.failure = "System has not been booted with systemd as init system";

  const auto installed = install_service(service(true), systemd.run());

  QVERIFY(!installed.ok());
  QVERIFY2(contains(installed.error().message, "atoll agent"), installed.error().message.c_str());
  QVERIFY(!std::filesystem::exists(*unit_path(ServiceScope::kUser)));
  QVERIFY(!systemd.linger);
}

void AdminCommandsTest::a_unit_of_somebody_else_is_left_alone() {
  ConfigHome config;
  FakeSystemd systemd;
  const auto unit = *unit_path(ServiceScope::kUser);
  std::filesystem::create_directories(unit.parent_path());
  std::ofstream(unit) << "[Unit]\nDescription=mine\n";

  QCOMPARE(install_service(service(true), systemd.run()).error().code, ErrorCode::kInvalidArgument);
  QCOMPARE(remove_service(ServiceScope::kUser, systemd.run()).error().code, ErrorCode::kInvalidArgument);

  QVERIFY(contains(*read_file(unit), "mine"));
}

void AdminCommandsTest::the_unit_is_what_systemd_accepts() {
  for (const ServiceScope scope : {ServiceScope::kUser, ServiceScope::kSystem}) {
    const std::string text = *unit_text({scope, "/usr/bin/atoll", ""});
    for (const char* line : {"Type=notify\n", "KillMode=mixed\n", "TimeoutStopSec=120\n",
                             "RestartPreventExitStatus=8 9 11\n", "ExecStart=\"/usr/bin/atoll\" agent"}) {
      QVERIFY2(contains(text, line), text.c_str());
    }
    QVERIFY(!contains(text, "PrivateDevices"));  // it hides GPUs
    QCOMPARE(contains(text, "User=atoll\n"), scope == ServiceScope::kSystem);
  }
}

void AdminCommandsTest::systemd_itself_finds_no_fault_with_the_units_data() {
  QTest::addColumn<bool>("system");
  QTest::newRow("of a user") << false;
  QTest::newRow("of the system") << true;
}

void AdminCommandsTest::systemd_itself_finds_no_fault_with_the_units() {
  QFETCH(const bool, system);
  if (QStandardPaths::findExecutable("systemd-analyze").isEmpty()) QSKIP("systemd-analyze is not installed");
  const QTemporaryDir directory;
  const ServiceScope scope = system ? ServiceScope::kSystem : ServiceScope::kUser;
  const std::string good = *unit_text({scope, "/bin/sh", ""});
  const auto verify = [&](const std::string& text) {
    std::ofstream(directory.filePath(kServiceName).toStdString()) << text;
    const auto outcome = run_system_program({"env", "XDG_RUNTIME_DIR=" + directory.path().toStdString(),
                                             "systemd-analyze", "verify", "--man=no", system ? "--system" : "--user",
                                             directory.filePath(kServiceName).toStdString()});
    return outcome.ok() ? outcome->output : outcome.error().message;
  };

  QCOMPARE(verify(good), std::string());
  QVERIFY(contains(verify(good + "[Service]\nKillMode=sometimes\n"), "sometimes"));
}

void AdminCommandsTest::a_system_service_gets_its_user_and_directories() {
  const QTemporaryDir root;
  const std::filesystem::path etc = std::filesystem::path(root.path().toStdString()) / "etc";
  FakeSystemd systemd;
  // systemctl is a fake; what makes users and directories is the system's own, in a root of its own.
  const bool real = ::geteuid() == 0 && !QStandardPaths::findExecutable("systemd-sysusers").isEmpty();
  const RunProgram run = [&](const std::vector<std::string>& command) -> Result<ProgramOutcome> {
    if (!real || !command.front().starts_with("systemd-")) return systemd.run()(command);
    std::vector<std::string> rooted = command;
    rooted.insert(rooted.begin() + 1, "--root=" + root.path().toStdString());
    return run_system_program(rooted);
  };
  ServiceInstallOptions options = service(false);
  options.unit.scope = ServiceScope::kSystem;
  options.etc = etc;

  const auto installed = install_service(options, run);

  QVERIFY2(installed.ok(), installed.ok() ? "" : installed.error().message.c_str());
  QCOMPARE(installed->unit, etc / "systemd/system/atoll.service");
  QVERIFY(contains(*read_file(etc / "sysusers.d/atoll.conf"), "\nu atoll "));
  QVERIFY(contains(*read_file(etc / "tmpfiles.d/atoll.conf"), "\nd /run/atoll 0750 atoll atoll"));
  if (real) {
    QVERIFY(contains(*read_file(etc / "group"), "atoll:"));
    struct stat info {};
    QVERIFY(::stat((root.path() + "/run/atoll").toUtf8(), &info) == 0 && (info.st_mode & 0777) == 0750);
    QVERIFY(info.st_gid != 0);
  }
  QVERIFY(remove_service(ServiceScope::kSystem, run, etc).ok());
  QVERIFY(!std::filesystem::exists(etc / "sysusers.d/atoll.conf"));
  QVERIFY(!std::filesystem::exists(etc / "tmpfiles.d/atoll.conf"));
  QVERIFY(!std::filesystem::exists(installed->unit));
}

void AdminCommandsTest::a_path_in_a_unit_is_taken_literally() {
  const std::string text = *unit_text({ServiceScope::kUser, "/opt/a b/atoll", "/data/100%/\"$HOME\""});

  QVERIFY2(contains(text, "ExecStart=\"/opt/a b/atoll\" agent --home \"/data/100%%/\\\"$$HOME\\\"\""), text.c_str());
  QVERIFY(!unit_text({ServiceScope::kUser, "/opt/x\nExecStart=/bin/sh", ""}).ok());
}

// What each shell is told to run: the completions, and a line as somebody types it, with TAB. Prints what is offered.
QStringList arguments_of(const QString& shell, CliRun& atoll, const QString& line) {
  const std::string completions = atoll({"completion", shell.toStdString()}).out;
  const QString source = QString::fromStdString(atoll.path("completions").string());
  std::ofstream(source.toStdString()) << completions;
  const QString file = QString::fromStdString(atoll.path("script").string());
  if (shell == "fish") return {"--no-config", "-c", "source '" + source + "'; complete -C '" + line + "'"};
  if (shell == "bash") {
    std::ofstream(file.toStdString()) << "source '" << source.toStdString() << "'\nread -ra COMP_WORDS <<< '"
                                      << line.toStdString()
                                      << "'\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_atoll\n"
                                         "printf '%s\\n' \"${COMPREPLY[@]}\"\n";
    return {"-u", file};
  }
  // zsh completes in its line editor alone, so at a terminal; Ctrl-G then says what stands there.
  std::ofstream(file.toStdString()) << R"(zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PROMPT=; autoload -Uz compinit; compinit -D -u; source $1; show() { print -r -- \"<\$BUFFER>\" > $2; exit }; zle -N show; bindkey '^G' show; print re''ady"
while zpty -r shell line; do [[ $line == *ready* ]] && break; done
zpty -w -n shell "$3"$'\t\a'
while zpty -r shell line; do :; done
cat $2
)";
  return {"-f", file, source, file + ".shown", line};
}

void AdminCommandsTest::a_shell_completes_commands_and_flags_data() {
  QTest::addColumn<QString>("shell");
  QTest::addColumn<QString>("line");
  QTest::addColumn<QString>("offer");
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const auto row = [&](const char* name, const char* line, const char* offer) {
      QTest::addRow("%s: %s", shell, name) << shell << line << offer;
    };
    row("command", "atoll sta", "status");
    row("in a group", "atoll hub inv", "invite");
    row("flag", "atoll status --wa", "--watch");
    row("behind a flag", "atoll hub --x init --na", "--name");
    row("words", "atoll completion f", "fish");
    row("value", "atoll hub init --wire bf", "bf16");
  }
}

void AdminCommandsTest::a_shell_completes_commands_and_flags() {
  QFETCH(const QString, shell);
  QFETCH(const QString, line);
  QFETCH(const QString, offer);
  if (QStandardPaths::findExecutable(shell).isEmpty()) QSKIP(qPrintable(shell + " is not installed"));
  CliRun atoll;
  QProcess process;
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  environment.insert("HOME", QString::fromStdString(atoll.path("").string()));
  environment.insert("TERM", "dumb");
  process.setProcessEnvironment(environment);

  process.start(shell, arguments_of(shell, atoll, line));

  QVERIFY(process.waitForFinished(60'000));
  const QString out = process.readAllStandardOutput(), err = process.readAllStandardError();
  QVERIFY2(err.isEmpty(), qPrintable(err));
  QVERIFY2(out.split(QRegularExpression("[\\s<>]+")).contains(offer), qPrintable(out));
}

void AdminCommandsTest::every_shell_gets_every_command_data() {
  QTest::addColumn<QString>("shell");
  for (const char* shell : {"bash", "zsh", "fish"}) QTest::newRow(shell) << shell;
}

void AdminCommandsTest::every_shell_gets_every_command() {
  QFETCH(const QString, shell);
  CliRun atoll;

  const CliOutcome outcome = atoll({"completion", shell.toStdString()});

  QCOMPARE(outcome.exit_code, 0);
  for (const char* word : {"status", "peers", "hub", "backup", "validate", "watch", "origin"}) {
    QVERIFY2(contains(outcome.out, word), word);
  }
  QVERIFY(!contains(outcome.out, "atoll man"));  // the build's own
}

void AdminCommandsTest::every_command_has_a_man_page() {
  CliRun atoll;

  QCOMPARE(atoll({"man", atoll.path("man").string()}).exit_code, 0);

  const std::string page = *read_file(atoll.path("man") / "atoll-hub-invite.1");
  for (const char* part : {".TH atoll\\-hub\\-invite 1", ".SH OPTIONS", "\\fB\\-\\-expires\\fR", ".SH EXAMPLES",
                           "atoll hub invite \\-\\-expires 2h"}) {
    QVERIFY2(contains(page, part), page.c_str());
  }
  QVERIFY(contains(*read_file(atoll.path("man") / "atoll.1"), "Exit codes: 0 ok"));
}

QTEST_GUILESS_MAIN(AdminCommandsTest)
#include "admin_commands_test.moc"
