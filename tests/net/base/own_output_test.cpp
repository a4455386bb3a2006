// The program of a log is this one once more, started with "--talk": it writes lines as a trainer does for weeks, from
// two threads, and crashes.
#include "net/base/own_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <QCoreApplication>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "net/base/file.h"
#include "net/base/open_files.h"
#include "net/base/unique_fd.h"

using namespace atl;

namespace {

constexpr std::uint64_t kMost = 64 * 1024;  // of the log and its predecessor

// Without end until its log was rotated, which is what it can wait for.
int talk(const std::filesystem::path& log) {
  const OwnOutput output(log, kMost, std::chrono::milliseconds(5));
  const std::filesystem::path before = log.string() + ".1";
  // The new file stands at its place a moment before the output goes to it.
  const auto rotated = [&] {
    struct stat written {};
    struct stat file {};
    return std::filesystem::exists(before) && ::fstat(STDERR_FILENO, &written) == 0 &&
           ::stat(log.c_str(), &file) == 0 && written.st_ino == file.st_ino;
  };
  std::jthread other([&] {
    for (int i = 0; !rotated(); ++i) {
      fmt::print(stdout, "stdout {}\n", i);
      std::fflush(stdout);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
  int said = 0;
  while (!rotated()) {
    fmt::print(stderr, "stderr {}\n", said++);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  other.join();
  fmt::print(stderr, "after the rotation\n");
  std::fputs("terminate called: the last word\n", stderr);
  std::abort();
}

std::string content(const std::filesystem::path& path) {
  const auto text = read_file(path);
  return text.ok() ? *text : std::string();
}

// Started without stdin and stderr: 0 if they are then nowhere.
int fill_what_is_closed() {
  fill_standard_files();
  struct stat nowhere = {}, in = {}, error = {};
  const bool known =
      ::stat("/dev/null", &nowhere) == 0 && ::fstat(STDIN_FILENO, &in) == 0 && ::fstat(STDERR_FILENO, &error) == 0;
  return known && in.st_rdev == nowhere.st_rdev && error.st_rdev == nowhere.st_rdev ? 0 : 1;
}

}  // namespace

class OwnOutputTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void cleanup();
  void a_log_is_rotated_while_its_program_runs_and_nothing_is_lost();
  void a_small_log_stays_where_it_is();
  void output_that_goes_elsewhere_is_left_alone();
  void a_planted_link_is_not_written_to();
  void who_is_started_without_output_opens_none_in_its_place();

 private:
  std::filesystem::path log() const { return std::filesystem::path(directory_.path().toStdString()) / "trainer.log"; }
  std::filesystem::path before() const { return log().string() + ".1"; }
  UniqueFd open_log(const std::string& text) const {
    if (!write_file_atomically(log(), text, FileMode::kPrivate).ok()) qFatal("no log");
    return UniqueFd(::open(log().c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  }
  QTemporaryDir directory_;
};

void OwnOutputTest::cleanup() {
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path().toStdString())) {
    std::filesystem::remove(entry);
  }
}

void OwnOutputTest::a_log_is_rotated_while_its_program_runs_and_nothing_is_lost() {
  QProcess program;
  program.setStandardOutputFile(QString::fromStdString(log().string()), QIODevice::Append);
  program.setStandardErrorFile(QString::fromStdString(log().string()), QIODevice::Append);
  program.start(QCoreApplication::applicationFilePath(), {"--talk", QString::fromStdString(log().string())});

  QVERIFY(program.waitForFinished(60'000));

  QCOMPARE(program.exitStatus(), QProcess::CrashExit);
  const std::string old = content(before()), now = content(log());
  QVERIFY(old.size() > kMost / 2);
  QVERIFY2(now.ends_with("after the rotation\nterminate called: the last word\n"), now.c_str());
  const std::string all = old + now;
  for (const std::string stream : {"stdout", "stderr"}) {
    int count = 0;
    while (all.find(fmt::format("{} {}\n", stream, count)) != std::string::npos) ++count;
    QVERIFY(count > 0);
    QVERIFY2(all.find(fmt::format("{} {}\n", stream, count + 1)) == std::string::npos, "a line was lost");
  }
}

void OwnOutputTest::a_small_log_stays_where_it_is() {
  const UniqueFd fd = open_log("few words\n");

  QVERIFY(rotate_output(log(), 100, {fd.get()}).ok());

  QVERIFY(!std::filesystem::exists(before()));
}

void OwnOutputTest::output_that_goes_elsewhere_is_left_alone() {
  const UniqueFd fd = open_log(std::string(200, 'x')), elsewhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));

  QVERIFY(rotate_output(log(), 100, {fd.get(), elsewhere.get()}).ok());

  QVERIFY(!std::filesystem::exists(before()));
}

void OwnOutputTest::a_planted_link_is_not_written_to() {
  const UniqueFd fd = open_log(std::string(200, 'x'));
  const std::filesystem::path victim = log().parent_path() / "victim";
  QVERIFY(write_file_atomically(victim, "precious", FileMode::kPrivate).ok());
  std::filesystem::create_symlink(victim, log().string() + ".next");

  QVERIFY(rotate_output(log(), 100, {fd.get()}).ok());
  QCOMPARE(::write(fd.get(), "new\n", 4), ssize_t{4});

  QCOMPARE(content(victim), std::string("precious"));
  QCOMPARE(content(log()), std::string("new\n"));
  QCOMPARE(content(before()), std::string(200, 'x'));
}

void OwnOutputTest::who_is_started_without_output_opens_none_in_its_place() {
  QCOMPARE(
      QProcess::execute("/bin/sh", {"-c", "exec \"$0\" --closed <&- 2>&-", QCoreApplication::applicationFilePath()}),
      0);
}

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--closed") == 0) return fill_what_is_closed();
  if (argc == 3 && std::strcmp(argv[1], "--talk") == 0) return talk(argv[2]);
  const QCoreApplication app(argc, argv);
  OwnOutputTest test;
  return QTest::qExec(&test, argc, argv);
}
#include "own_output_test.moc"
