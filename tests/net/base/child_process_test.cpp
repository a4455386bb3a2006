// Children are shell scripts: how they are started, what they get, and what becomes of them and of their owner.
#include "net/base/child_process.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <QTemporaryDir>
#include <QTest>
#include <csignal>
#include <fstream>
#include <functional>
#include <thread>

#include "net/base/file.h"
#include "tests/fakes/patience.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

ChildOptions shell(const std::string& script) { return {.program = "/bin/sh", .arguments = {"-c", script}}; }

Deadline soon() { return Deadline::after(60s); }

bool lives(pid_t pid) { return ChildProcess::take_over(pid).has_value(); }

// What the child writes to its output until it closes it.
std::string output_of(ChildOptions options) {
  Pipe pipe = *make_pipe();
  options.output = pipe.writing.get();
  auto child = ChildProcess::spawn(options);
  if (!child.ok()) return child.error().message;
  pipe.writing.reset();
  std::string text;
  for (char c = 0; ::read(pipe.reading.get(), &c, 1) == 1;) text += c;
  (void)child->wait(soon());
  return text;
}

// In a process of its own, which what it does to itself is not to outlive: its exit status.
int status_of_fork(const std::function<int()>& work) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(work());
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

class ChildProcessTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void how_it_ended_is_its_status_or_its_signal_data();
  void how_it_ended_is_its_status_or_its_signal();
  void a_program_that_cannot_begin_is_the_error_of_spawn_data();
  void a_program_that_cannot_begin_is_the_error_of_spawn();
  void a_name_without_a_slash_is_found_on_the_path();
  void the_environment_is_ours_with_what_is_said();
  void streams_go_where_they_are_said_to();
  void streams_are_right_where_ours_are_closed();
  void a_log_is_private_and_appended_to();
  void nothing_else_that_is_open_here_is_open_there();
  void signals_that_we_block_reach_it();
  void its_program_waits_until_it_was_written_down();
  void a_program_whose_parent_died_meanwhile_never_begins();
  void it_is_killed_with_its_owner_and_its_group_with_it();
  void it_dies_with_the_thread_that_spawned_it();
  void one_that_ends_on_its_own_outlives_its_owner();
  void one_that_was_moved_from_is_neither_signalled_nor_reaped();
  void a_wait_ends_at_its_deadline_and_when_it_is_interrupted();
  void one_that_ignores_sigterm_is_killed_at_the_deadline();
  void one_of_another_parent_is_taken_over_by_its_number();
  void one_that_is_stopped_is_seen_to_be();

 private:
  std::string path(const char* name) const { return directory_.filePath(name).toStdString(); }
  QTemporaryDir directory_;
};

void ChildProcessTest::how_it_ended_is_its_status_or_its_signal_data() {
  QTest::addColumn<QByteArray>("script");
  QTest::addColumn<int>("status");
  QTest::newRow("well") << QByteArray("exit 0") << 0;
  QTest::newRow("with a status") << QByteArray("exit 7") << 7;
  QTest::newRow("by a signal") << QByteArray("kill -TERM $$") << 128 + SIGTERM;
}

void ChildProcessTest::how_it_ended_is_its_status_or_its_signal() {
  QFETCH(const QByteArray, script);
  auto child = ChildProcess::spawn(shell(script.toStdString()));
  QVERIFY(child.ok());

  const auto status = child->wait(soon());

  QVERIFY2(status.ok(), status.ok() ? "" : status.error().message.c_str());
  QTEST(*status, "status");
  QCOMPARE(child->poll(), child->exit_status());
  QVERIFY(child->ended());
}

void ChildProcessTest::a_program_that_cannot_begin_is_the_error_of_spawn_data() {
  QTest::addColumn<QString>("program");
  QTest::addColumn<int>("code");
  QTest::addColumn<QString>("says");
  const QString directory = directory_.path();
  QTest::newRow("not there") << directory + "/nothing" << int(ErrorCode::kNotFound) << "No such file";
  QTest::newRow("not on the path") << "atoll-no-such-program" << int(ErrorCode::kNotFound) << "on PATH";
  QTest::newRow("may not be run") << directory + "/plain" << int(ErrorCode::kPermissionDenied) << "Permission denied";
  QTest::newRow("is no program") << directory + "/text" << int(ErrorCode::kIo) << "Exec format error";
}

void ChildProcessTest::a_program_that_cannot_begin_is_the_error_of_spawn() {
  QFETCH(const QString, program);
  QFETCH(const QString, says);
  std::ofstream(path("plain")) << "#!/bin/sh\n";
  std::ofstream(path("text")) << "nothing that a kernel runs\n";
  QVERIFY(::chmod(path("text").c_str(), 0755) == 0);

  const auto child = ChildProcess::spawn({.program = program.toStdString()});

  QVERIFY(!child.ok());
  QTEST(int(child.error().code), "code");
  QVERIFY2(child.error().message.find(says.toStdString()) != std::string::npos, child.error().message.c_str());
  QVERIFY(child.error().message.find(program.toStdString()) != std::string::npos);
  QVERIFY(::waitpid(-1, nullptr, WNOHANG) < 0);  // nothing is left of it to be reaped
}

void ChildProcessTest::a_name_without_a_slash_is_found_on_the_path() {
  QCOMPARE(output_of({.program = "sh", .arguments = {"-c", "echo $0"}}), std::string("sh\n"));
}

void ChildProcessTest::the_environment_is_ours_with_what_is_said() {
  qputenv("ATOLL_TEST_OURS", "ours");
  qputenv("ATOLL_TEST_CHANGED", "before");
  ChildOptions options = shell("echo $ATOLL_TEST_OURS $ATOLL_TEST_CHANGED $ATOLL_TEST_NEW");
  options.environment = {{"ATOLL_TEST_CHANGED", "after"}, {"ATOLL_TEST_NEW", "new"}};

  QCOMPARE(output_of(options), std::string("ours after new\n"));
}

void ChildProcessTest::streams_go_where_they_are_said_to() {
  Pipe input = *make_pipe();
  QCOMPARE(::write(input.writing.get(), "question\n", 9), ssize_t{9});
  input.writing.reset();
  ChildOptions options = shell("cat; echo complaint >&2");
  options.input = input.reading.get();
  options.errors = ChildOptions::kNothing;

  QCOMPARE(output_of(options), std::string("question\n"));
  QCOMPARE(output_of(shell("cat")), std::string());  // where none is said, there is no input
}

void ChildProcessTest::streams_are_right_where_ours_are_closed() {
  const std::string log = path("closed.txt");
  const int status = status_of_fork([&] {
    ::close(STDIN_FILENO);
    ::close(STDOUT_FILENO);
    Pipe input = *make_pipe();  // of the numbers that were closed
    if (::write(input.writing.get(), "question\n", 9) != 9) return 1;
    input.writing.reset();
    ChildOptions options = shell("cat; echo complaint >&2");
    options.input = input.reading.get();
    options.log = log;
    auto child = ChildProcess::spawn(options);
    return child.ok() ? child->wait(soon()).value() : 2;
  });

  QCOMPARE(status, 0);
  QCOMPARE(*read_file(log), std::string("question\ncomplaint\n"));
}

void ChildProcessTest::a_log_is_private_and_appended_to() {
  ChildOptions options = shell("echo said; echo complaint >&2");
  options.log = path("child.log");

  for (int i = 0; i < 2; ++i) QCOMPARE(ChildProcess::spawn(options)->wait(soon()).value(), 0);

  QCOMPARE(*read_file(options.log), std::string("said\ncomplaint\nsaid\ncomplaint\n"));
  QVERIFY(std::filesystem::status(options.log).permissions() == std::filesystem::perms(0600));
}

void ChildProcessTest::nothing_else_that_is_open_here_is_open_there() {
  for (int fd = 3; fd < 1024; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);  // what whoever runs this test left open
  ChildOptions options{.program = "ls", .arguments = {"/proc/self/fd"}};
  options.before_program = [](const ChildProcess&) {};

  QCOMPARE(output_of(options), std::string("0\n1\n2\n3\n"));  // 3: the directory that it reads
}

void ChildProcessTest::signals_that_we_block_reach_it() {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  auto child = ChildProcess::spawn(shell("exec sleep 600"));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  QVERIFY(child.ok());

  child->send_signal(SIGTERM);

  QCOMPARE(child->wait(soon()).value(), 128 + SIGTERM);
}

void ChildProcessTest::its_program_waits_until_it_was_written_down() {
  const std::string mark = path("begun");
  ChildOptions options = shell("touch " + mark);
  bool begun_before = true;
  pid_t told = 0;
  std::uint64_t start_time = 0;
  options.before_program = [&](const ChildProcess& waiting) {
    std::this_thread::sleep_for(100ms);
    begun_before = std::filesystem::exists(mark);
    told = waiting.pid();
    start_time = waiting.start_time();
  };

  auto child = ChildProcess::spawn(options);

  QVERIFY(child.ok());
  QVERIFY(!begun_before);
  QCOMPARE(told, child->pid());
  QVERIFY(start_time > 0);
  QCOMPARE(child->wait(soon()).value(), 0);
  QVERIFY(std::filesystem::exists(mark));
}

void ChildProcessTest::a_program_whose_parent_died_meanwhile_never_begins() {
  const std::string mark = path("never"), number = path("number");
  const int status = status_of_fork([&] {
    ChildOptions options = shell("touch " + mark);
    options.end = ChildEnd::kItsOwn;
    options.group = ChildGroup::kSession;
    options.before_program = [&](const ChildProcess& waiting) {
      std::ofstream(number) << waiting.pid() << std::flush;
      ::_exit(9);
    };
    return ChildProcess::spawn(options).ok() ? 0 : 1;
  });

  pid_t pid = 0;
  std::ifstream(number) >> pid;
  QCOMPARE(status, 9);
  QVERIFY(pid > 1);
  QTRY_VERIFY(!lives(pid));
  QVERIFY(!std::filesystem::exists(mark));
}

void ChildProcessTest::it_is_killed_with_its_owner_and_its_group_with_it() {
  const std::string number = path("grandchild");
  pid_t pid = 0, grandchild = 0;
  {
    ChildOptions options = shell("trap '' TERM; sleep 600 & echo $! > " + number + "; wait");
    options.end = ChildEnd::kWithOwner;
    auto child = ChildProcess::spawn(options);
    QVERIFY(child.ok());
    pid = child->pid();
    QTRY_VERIFY((std::ifstream(number) >> grandchild) && grandchild > 1);
  }
  QVERIFY(::kill(pid, 0) != 0);  // reaped
  QTRY_VERIFY(!lives(grandchild));
}

void ChildProcessTest::it_dies_with_the_thread_that_spawned_it() {
  std::optional<ChildProcess> with_thread, with_owner;
  std::thread([&] {
    ChildOptions options = shell("exec sleep 600");
    with_thread = ChildProcess::spawn(options).value();
    options.end = ChildEnd::kWithOwner;
    with_owner = ChildProcess::spawn(options).value();
  }).join();

  QCOMPARE(with_thread->wait(soon()).value(), 128 + SIGKILL);
  QVERIFY(!with_owner->ended());
}

void ChildProcessTest::one_that_ends_on_its_own_outlives_its_owner() {
  pid_t pid = 0;
  {
    ChildOptions options = shell("exec sleep 600");
    options.end = ChildEnd::kItsOwn;
    options.group = ChildGroup::kSession;
    auto child = ChildProcess::spawn(options);
    QVERIFY(child.ok());
    pid = child->pid();
  }
  QVERIFY(lives(pid));
  QCOMPARE(::getsid(pid), pid);
  QCOMPARE(::kill(pid, SIGKILL), 0);
  QCOMPARE(::waitpid(pid, nullptr, 0), pid);
}

void ChildProcessTest::one_that_was_moved_from_is_neither_signalled_nor_reaped() {
  auto spawned = ChildProcess::spawn(shell("exec sleep 600"));
  auto other = ChildProcess::spawn(shell("exec sleep 600"));
  QVERIFY(spawned.ok() && other.ok());
  {
    ChildProcess from = std::move(*spawned);
    ChildProcess to = std::move(from);
    from.send_signal(SIGKILL);  // NOLINT(bugprone-use-after-move): what is asked here. -1 would be everybody.
    QVERIFY(!from.ended());
    QVERIFY(!to.ended());
    *other = std::move(to);  // what it had is killed and reaped
  }
  QVERIFY(!other->ended());
  QCOMPARE(::waitpid(-1, nullptr, WNOHANG), 0);  // one child, which runs
  other->send_signal(SIGKILL);
  QCOMPARE(other->wait(soon()).value(), 128 + SIGKILL);
}

void ChildProcessTest::a_wait_ends_at_its_deadline_and_when_it_is_interrupted() {
  auto child = ChildProcess::spawn(shell("exec sleep 600"));
  QVERIFY(child.ok());
  AbortSignal interrupt;

  QCOMPARE(child->wait(Deadline::after(1ms)).error().code, ErrorCode::kTimeout);
  const std::jthread interrupter([&] { interrupt.raise("enough"); });
  const auto interrupted = child->wait(soon(), &interrupt);

  QCOMPARE(interrupted.error().code, ErrorCode::kAborted);
  QCOMPARE(interrupted.error().message, std::string("enough"));
}

void ChildProcessTest::one_that_ignores_sigterm_is_killed_at_the_deadline() {
  const std::string mark = path("ready");
  auto child = ChildProcess::spawn(shell("trap '' TERM; touch " + mark + "; while :; do sleep 1; done"));
  QVERIFY(child.ok());
  QTRY_VERIFY(std::filesystem::exists(mark));

  child->terminate(Deadline::after(50ms));

  QCOMPARE(child->exit_status(), std::optional(128 + SIGKILL));
}

void ChildProcessTest::one_of_another_parent_is_taken_over_by_its_number() {
  auto child = ChildProcess::spawn(shell("exec sleep 600"));
  QVERIFY(child.ok());
  {
    auto taken = ChildProcess::take_over(child->pid());
    QVERIFY(taken.has_value());
    QCOMPARE(taken->start_time(), child->start_time());
  }
  QVERIFY(!child->ended());  // it ends on its own, not with who took it over

  auto taken = ChildProcess::take_over(child->pid());
  taken->send_signal(SIGTERM);

  QCOMPARE(taken->wait(soon()).error().code, ErrorCode::kNotFound);  // a zombie has ended, too
  QCOMPARE(taken->exit_status(), std::optional<int>());
  QCOMPARE(child->wait(soon()).value(), 128 + SIGTERM);
  QVERIFY(!ChildProcess::take_over(child->pid()).has_value());
  QVERIFY(!ChildProcess::take_over(-1).has_value());
  QVERIFY(!ChildProcess::take_over(0).has_value());
}

void ChildProcessTest::one_that_is_stopped_is_seen_to_be() {
  auto child = ChildProcess::spawn(shell("exec sleep 600"));
  QVERIFY(child.ok());
  QVERIFY(!child->stopped());

  child->send_signal(SIGSTOP);

  QTRY_VERIFY(child->stopped());
  QVERIFY(!child->ended());
}

QTEST_GUILESS_MAIN(ChildProcessTest)
#include "child_process_test.moc"
