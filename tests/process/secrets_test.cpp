// No secret of a run leaves the files that are its owner's alone: it is in no command line, no environment, no log, no
// diagnostics bundle, and in no file that others may read, while a hub serves and islands train that joined in every
// way there is.
#include <sys/stat.h>

#include <QtTest/QTest>
#include <csignal>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "net/base/encoding.h"
#include "net/base/file.h"
#include "net/control/home.h"
#include "net/tls/identity.h"
#include "net/wire/invite.h"
#include "tests/fakes/processes.h"
#include "tests/process/agent_service.h"
#include "tests/process/run_parts.h"
#include "tests/process/scene.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr const char* kPlantedToken = "9f8e7d6c5b4a39281706f5e4d3c2b1a0";

// A line out of the middle of a PEM file: of its key, not of its frame.
std::string line_of_key(const std::filesystem::path& pem) {
  const std::string text = require(read_file(pem));
  const auto begin = text.find('\n') + 1;
  return text.substr(begin, text.find('\n', begin) - begin);
}

std::string raw(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

class SecretsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void cleanupTestCase();
  void the_search_finds_what_is_there();
  void command_lines_and_environments_hold_none();
  void what_programs_print_and_log_holds_none();
  void a_diagnostics_bundle_holds_none();
  void files_that_others_may_read_hold_none();

 private:
  std::string take_invite(const std::string& name);
  void join(const std::string& name, const std::vector<std::string>& how, const std::string& input = "");
  // The name of a secret that is in it; empty: none.
  std::string secret_in(const std::string& text) const;
  std::vector<std::filesystem::path> files() const;  // under all homes

  Scene scene_;
  std::vector<std::unique_ptr<QProcess>> programs_;
  std::map<std::string, std::string> secrets_;  // what to look for, by its name
  std::vector<std::string> homes_;
};

std::string SecretsTest::take_invite(const std::string& name) {
  std::string text = scene_.invite();
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const Invite invite = require(decode_invite(text, now));
  secrets_["invite of " + name] = text;
  secrets_["secret of the invite of " + name] = base64url_encode(invite.secret);
  secrets_["secret of the invite of " + name + ", in hex"] = hex_encode(invite.secret);
  secrets_["secret of the invite of " + name + ", as it is"] = to_string(invite.secret);
  return text;
}

void SecretsTest::join(const std::string& name, const std::vector<std::string>& how, const std::string& input) {
  const std::string home = scene_.path(name).string();
  homes_.push_back(home);
  std::vector<std::string> arguments{"join", "--yes", "--threads", "1", "--listen", "127.0.0.1:0", "--home", home};
  arguments.insert(arguments.end(), how.begin(), how.end());
  programs_.push_back(scene_.start(arguments));
  programs_.back()->write(input.data(), static_cast<qint64>(input.size()));
  if (!input.empty()) programs_.back()->waitForBytesWritten();
  programs_.back()->closeWriteChannel();
  const bool takes_part = wait_for([&] {
    const auto state = nlohmann::json::parse(scene_.run({"status", "--json", "--home", home}).out, nullptr, false);
    return state.is_object() && state.value("pid", 0) > 0 && state.value("islands_live", 0u) > 0;
  });
  if (!takes_part) qFatal("%s does not take part: %s", name.c_str(), programs_.back()->readAll().constData());
  secrets_["key of " + name] = line_of_key(IslandHome{home}.identity() / "key.pem");
}

void SecretsTest::initTestCase() {
  ::umask(0);  // of somebody who shares everything
  scene_.make_hub();
  scene_.serve_hub();
  homes_.push_back(scene_.path("hub").string());
  const HubHome hub{scene_.path("hub")};
  secrets_["key of the authority"] = line_of_key(hub.authority() / "authority-key.pem");
  secrets_["key of the hub"] = line_of_key(hub.identity() / "key.pem");

  join("by argument", {take_invite("by argument")});
  require(write_file_atomically(scene_.path("invite.txt"), take_invite("by file") + "\n", FileMode::kPrivate));
  join("by file", {"--invite-file", scene_.path("invite.txt").string()});
  join("by stdin", {"--invite-stdin"}, take_invite("by stdin") + "\n");
  const std::string agents = scene_.path("by agent").string();
  programs_.push_back(scene_.start({"agent", "--home", agents}));
  QVERIFY(wait_for([&] { return scene_.run({"stop", "--home", agents}).exit_code == 0; }));
  // What its owner wrote where it does not belong.
  std::ofstream(agent_home_in(agents).config_file) << "# token = " << kPlantedToken << "\n";
  ::chmod(agent_home_in(agents).config_file.c_str(), 0600);
  secrets_["token in config.toml"] = kPlantedToken;
  join("by agent", {take_invite("by agent")});
}

void SecretsTest::cleanupTestCase() {
  for (const auto& program : programs_) ::kill(static_cast<pid_t>(program->processId()), SIGINT);
  for (const auto& program : programs_) (void)outcome_of(*program);
}

std::string SecretsTest::secret_in(const std::string& text) const {
  for (const auto& [name, secret] : secrets_) {
    if (text.find(secret) != std::string::npos) return name;
  }
  return "";
}

std::vector<std::filesystem::path> SecretsTest::files() const {
  std::vector<std::filesystem::path> found;
  for (const std::string& home : homes_) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(home)) {
      if (entry.is_regular_file()) found.push_back(entry.path());
    }
  }
  return found;
}

void SecretsTest::the_search_finds_what_is_there() {
  // Given the files that do hold secrets, the search finds them.
  std::set<std::string> found;
  for (const auto& file : files()) found.insert(secret_in(raw(file)));

  QVERIFY(found.contains("key of the authority"));
  QVERIFY(found.contains("key of the hub"));
  for (const char* how : {"by argument", "by file", "by stdin", "by agent"}) {
    QVERIFY2(found.contains(std::string("key of ") + how), how);
  }
  QVERIFY(found.contains("token in config.toml"));
}

void SecretsTest::command_lines_and_environments_hold_none() {
  const std::string mine = "HOME=" + scene_.path("home").string();
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string environment = read_of_process(entry.path() / "environ");
    if (environment.find(mine) == std::string::npos) continue;
    const std::string command_line = read_of_process(entry.path() / "cmdline");
    ++seen;
    QVERIFY2(secret_in(command_line).empty(), secret_in(command_line).c_str());
    QVERIFY2(secret_in(environment).empty(), secret_in(environment).c_str());
  }
  QVERIFY(seen >= 9);  // the hub, three joins and an agent, four trainers
}

void SecretsTest::what_programs_print_and_log_holds_none() {
  int logs = 0;
  for (const auto& file : files()) {
    if (file.extension() != ".log") continue;
    ++logs;
    QVERIFY2(secret_in(raw(file)).empty(), file.c_str());
  }
  QVERIFY(logs >= 5);  // of four trainers and an agent
  for (const auto& program : programs_) {
    (void)program->waitForReadyRead(1000);  // what waits in its pipes
    const std::string printed = (program->readAllStandardOutput() + program->readAllStandardError()).toStdString();
    QVERIFY(!printed.empty());
    QVERIFY2(secret_in(printed).empty(), printed.c_str());
  }
}

void SecretsTest::a_diagnostics_bundle_holds_none() {
  const std::string home = scene_.path("by agent").string();
  const std::string bundle = scene_.path("diag.tar").string();

  const ProgramOutcome outcome = scene_.run({"diag", "-o", bundle, "--home", home});

  QVERIFY2(outcome.exit_code == 0, outcome.err.c_str());
  const std::string content = raw(bundle);
  QVERIFY(content.find("config.toml") != std::string::npos);
  QVERIFY2(secret_in(content).empty(), secret_in(content).c_str());
  struct stat info {};
  QCOMPARE(::stat(bundle.c_str(), &info), 0);
  QCOMPARE(info.st_mode & 0077, 0u);
}

void SecretsTest::files_that_others_may_read_hold_none() {
  int readable = 0;
  for (const auto& file : files()) {
    struct stat info {};
    if (::stat(file.c_str(), &info) != 0) {
      QCOMPARE(errno, ENOENT);  // taken away since the directory was read
      continue;
    }
    if ((info.st_mode & 0077) == 0) continue;
    ++readable;
    QVERIFY2(secret_in(raw(file)).empty(), file.c_str());
  }
  qInfo("%d files may be read by others", readable);
}

QTEST_GUILESS_MAIN(SecretsTest)
#include "secrets_test.moc"
