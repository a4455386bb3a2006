// What a program prints is its result: where that cannot be written, the program has failed, whichever command it is.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QtCore/QRegularExpression>
#include <QtTest/QTest>
#include <csignal>
#include <fstream>
#include <map>
#include <set>

#include "net/base/file.h"
#include "tests/process/scene.h"

using namespace atl;
using namespace atl::test;

namespace {

const char* const kSays = "cannot write to standard output: No space left on device";

void print_to(const char* file) {
  const int descriptor = ::open(file, O_WRONLY);
  if (descriptor < 0 || ::dup2(descriptor, STDOUT_FILENO) < 0) ::_exit(99);
}
void print_to_a_full_disk() { print_to("/dev/full"); }

// A pipe whose reader has gone.
void print_to_nobody() {
  int ends[2];
  if (::pipe(ends) != 0 || ::dup2(ends[1], STDOUT_FILENO) < 0) ::_exit(99);
  ::close(ends[0]);
  ::close(ends[1]);
}

std::vector<std::string> words_of(const QString& text) {
  std::vector<std::string> words;
  for (const QString& word : text.split(' ', Qt::SkipEmptyParts)) words.push_back(word.toStdString());
  return words;
}

// Of each command that prints something without a run that trains: what it is given. HUB is a hub, ISLAND an island
// that has joined it, DATA a dataset, NEW a place where nothing is.
const std::map<QString, QString> kArguments = {
    {"check", "--quick"},
    {"status", "--home ISLAND --json"},
    {"checkpoints list", "--home ISLAND"},
    {"logs", "--home ISLAND"},
    {"diag", "--home ISLAND --output NEW"},
    {"config get", "--home ISLAND island.threads"},
    {"config path", "--home ISLAND"},
    {"config validate", "--home ISLAND"},
    {"hub status", "--home HUB"},
    {"hub invite", "--home HUB"},
    {"hub invites", "--home HUB"},
    {"hub islands", "--home HUB"},
    {"hub config", "--home HUB"},
    {"hub data", "--home HUB"},
    {"hub init", "--home NEW --data DATA --name other"},
    {"hub backup", "--home HUB NEW"},
    {"data info", "DATA"},
    {"data prepare", "TEXT --output NEW"},
    {"tokenize", "--tokenizer bytes TEXT"},
    {"bench quantise", "--payload 1MiB --repeat 1"},
    {"completion", "bash"},
    {"version", ""},
};

}  // namespace

class FullOutputTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void help_that_cannot_be_written_is_a_failure_data();
  void help_that_cannot_be_written_is_a_failure();
  void a_result_that_cannot_be_written_is_a_failure_data();
  void a_result_that_cannot_be_written_is_a_failure();
  void who_prints_for_ever_ends();
  void a_closed_output_is_a_failure();
  void a_reader_that_goes_ends_the_program_without_a_word();
  void where_that_signal_is_ignored_it_is_said();
  void the_other_programs_fail_alike_data();
  void the_other_programs_fail_alike();

 private:
  std::vector<std::string> filled_in(QString arguments) {
    const auto at = [this](const char* name) { return QString::fromStdString(scene_.path(name).string()); };
    arguments.replace("ISLAND", at("island")).replace("HUB", at("hub")).replace("DATA", at("data"));
    arguments.replace("TEXT", at("text.txt")).replace("NEW", at("new") + QString::number(++made_));
    return words_of(arguments);
  }

  Scene scene_;
  int made_ = 0;
  std::vector<QString> commands_;  // "hub init", of the parser
};

void FullOutputTest::initTestCase() {
  scene_.joined_home();
  std::filesystem::create_directories(scene_.path("island") / "state");
  std::ofstream(scene_.path("island") / "state" / "agent.log") << "2026-11-29T10:00:00.000 info agent started\n";
  QCOMPARE(scene_.run({"man", scene_.path("man1").string()}).exit_code, 0);
  for (const auto& page : std::filesystem::directory_iterator(scene_.path("man1"))) {
    const QString text = QString::fromStdString(read_file(page.path()).value());
    const QString usage = text.section(".SH SYNOPSIS\n\\fB", 1).section("\\fR", 0, 0);  // "atoll hub init"
    commands_.push_back(usage.section(' ', 1));
  }
  QVERIFY(commands_.size() > 50);
  for (const auto& [command, arguments] : kArguments) {
    QVERIFY2(std::find(commands_.begin(), commands_.end(), command) != commands_.end(), qPrintable(command));
  }
}

void FullOutputTest::help_that_cannot_be_written_is_a_failure_data() {
  QTest::addColumn<QString>("command");
  for (const QString& command : commands_) QTest::addRow("atoll %s", qPrintable(command)) << command;
}

void FullOutputTest::help_that_cannot_be_written_is_a_failure() {
  QFETCH(const QString, command);

  const ProgramOutcome outcome = scene_.run(words_of(command + " --help"), print_to_a_full_disk);

  QCOMPARE(outcome.exit_code, 1);
  QVERIFY2(outcome.err.find(kSays) != std::string::npos, outcome.err.c_str());
}

void FullOutputTest::a_result_that_cannot_be_written_is_a_failure_data() {
  QTest::addColumn<QString>("command");
  QTest::addColumn<QString>("arguments");
  for (const auto& [command, arguments] : kArguments) {
    QTest::addRow("atoll %s", qPrintable(command)) << command << arguments;
    const QString help = QString::fromStdString(scene_.run(words_of(command + " --help")).out);
    if (!help.contains("--json") || arguments.contains("--json")) continue;
    QTest::addRow("atoll %s --json", qPrintable(command)) << command << arguments + " --json";
  }
}

void FullOutputTest::a_result_that_cannot_be_written_is_a_failure() {
  QFETCH(const QString, command);
  QFETCH(const QString, arguments);
  std::vector<std::string> words = words_of(command);
  for (const std::string& word : filled_in(arguments)) words.push_back(word);

  const ProgramOutcome outcome = scene_.run(words, print_to_a_full_disk);

  QVERIFY2(outcome.exit_code > 0 && outcome.exit_code < 128, outcome.err.c_str());
  QVERIFY2(outcome.err.find(kSays) != std::string::npos, outcome.err.c_str());
}

void FullOutputTest::who_prints_for_ever_ends() {
  const ProgramOutcome outcome =
      scene_.run({"hub", "status", "--watch", "--home", scene_.path("hub").string()}, print_to_a_full_disk);

  QCOMPARE(outcome.exit_code, 1);
  QVERIFY2(outcome.err.find(kSays) != std::string::npos, outcome.err.c_str());
}

// As of coreutils; a file that is opened later does not get what was printed.
void FullOutputTest::a_closed_output_is_a_failure() {
  const ProgramOutcome outcome = scene_.run({"version"}, [] { ::close(STDOUT_FILENO); });

  QCOMPARE(outcome.exit_code, 1);
  QVERIFY2(outcome.err.find("Bad file descriptor") != std::string::npos, outcome.err.c_str());
}

void FullOutputTest::a_reader_that_goes_ends_the_program_without_a_word() {
  for (const char* command : {"version", "hub status --watch --home HUB", "completion bash"}) {
    const ProgramOutcome outcome = scene_.run(filled_in(command), [] {
      ::signal(SIGPIPE, SIG_DFL);
      print_to_nobody();
    });

    QCOMPARE(outcome.exit_code, 128 + SIGPIPE);
    QCOMPARE(outcome.err, std::string());
  }
}

void FullOutputTest::where_that_signal_is_ignored_it_is_said() {
  const ProgramOutcome outcome = scene_.run({"version"}, [] {
    ::signal(SIGPIPE, SIG_IGN);
    print_to_nobody();
  });

  QCOMPARE(outcome.exit_code, 1);
  QVERIFY2(outcome.err.find("Broken pipe") != std::string::npos, outcome.err.c_str());
}

void FullOutputTest::the_other_programs_fail_alike_data() {
  QTest::addColumn<QString>("call");
  QTest::newRow("the trainer's help") << "atoll-trainer --help";
  QTest::newRow("the trainer's version") << "atoll-trainer --version";
  QTest::newRow("export's help") << "atoll-trainer export --help";
  QTest::newRow("eval's help") << "atoll-trainer eval --help";
  QTest::newRow("sample's help") << "atoll-trainer sample --help";
  QTest::newRow("the probe") << "atoll-gpu-probe libraries";
#ifdef ATOLL_GUI
  QTest::newRow("the window's help") << "atoll-gui --help";
  QTest::newRow("the window's version") << "atoll-gui --version";
#endif
}

void FullOutputTest::the_other_programs_fail_alike() {
  QFETCH(const QString, call);
  QProcess process;
  process.setStandardOutputFile("/dev/full");

  process.start(QString(ATOLL_BIN_DIR "/") + call.section(' ', 0, 0), call.section(' ', 1).split(' '));
  const ProgramOutcome outcome = outcome_of(process);

  QCOMPARE(outcome.exit_code, 1);
  QVERIFY2(outcome.err.find(kSays) != std::string::npos, outcome.err.c_str());
}

QTEST_GUILESS_MAIN(FullOutputTest)
#include "full_output_test.moc"
