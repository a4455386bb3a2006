// Output that nobody takes holds nobody up.
#include "net/base/output_thread.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <termios.h>
#include <unistd.h>

#include <QtTest>
#include <csignal>
#include <memory>
#include <string>

#include "net/base/deadline.h"

using namespace std::chrono_literals;

namespace atl {
namespace {

constexpr int kPipeBytes = 4096;  // the least there is
constexpr auto kLimit = 60s;      // a hang, not a slow machine

struct Pipe {
  UniqueFd reading, writing;

  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0 || ::fcntl(ends[1], F_SETPIPE_SZ, kPipeBytes) != kPipeBytes) qFatal("no pipe");
    reading.reset(ends[0]);
    writing.reset(ends[1]);
  }
};

std::string line(int number) { return "line " + std::to_string(number) + std::string(80, '.') + "\n"; }

// Of what is there, or comes until so many bytes are.
std::string read(int descriptor, std::size_t bytes) {
  std::string text;
  char some[4096];
  pollfd ready{descriptor, POLLIN, 0};
  const Deadline deadline = Deadline::after(kLimit);
  while (text.size() < bytes && !deadline.expired()) {
    if (::poll(&ready, 1, deadline.poll_milliseconds()) <= 0) continue;
    const ssize_t count = ::read(descriptor, some, sizeof some);
    if (count <= 0) break;
    text.append(some, static_cast<std::size_t>(count));
  }
  return text;
}

}  // namespace

class OutputThreadTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { ::signal(SIGPIPE, SIG_IGN); }

  void nobody_waits_for_a_reader_and_nothing_is_lost_on_one_that_comes_late() {
    const Pipe pipe;
    OutputThread output(pipe.writing.get());
    std::string all;

    for (int i = 0; i < 1000; ++i) {  // 20 times what the pipe holds
      output.write(line(i));
      all += line(i);
    }

    QCOMPARE(read(pipe.reading.get(), all.size()), all);
    QCOMPARE(::fcntl(pipe.writing.get(), F_GETFL) & O_NONBLOCK, 0);  // which others have, too
  }

  void of_more_than_may_wait_the_oldest_is_lost() {
    const Pipe pipe;
    auto output = std::make_unique<OutputThread>(pipe.writing.get(), 10 * line(1000).size());

    for (int i = 1000; i < 2000; ++i) output->write(line(i));

    std::string ten;
    for (int i = 1990; i < 2000; ++i) ten += line(i);
    std::string text;
    while (!text.ends_with(ten)) {
      const std::string more = read(pipe.reading.get(), 1);
      QVERIFY2(!more.empty(), text.c_str());
      text += more;
    }
    QVERIFY(text.size() < 300 * line(1000).size());  // what the pipe held, a piece on its way, and ten
  }

  void what_was_said_last_is_written_before_the_end() {
    const Pipe pipe;
    {
      OutputThread output(pipe.writing.get());
      OutputThreadStream stream(output);
      stream << "one " << 2 << std::endl << "and three";
    }

    QCOMPARE(read(pipe.reading.get(), 15), std::string("one 2\nand three"));
  }

  void the_end_does_not_wait_for_a_reader_that_stopped() {
    const Pipe pipe;
    auto output = std::make_unique<OutputThread>(pipe.writing.get());
    for (int i = 0; i < 1000; ++i) output->write(line(i));
    const auto began = Clock::now();

    output.reset();

    QVERIFY(Clock::now() - began < kLimit);
  }

  void a_terminal_that_was_stopped_holds_nobody_up() {
    int ends[2];
    QCOMPARE(::openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr), 0);
    const UniqueFd screen(ends[0]), terminal(ends[1]);
    auto output = std::make_unique<OutputThread>(terminal.get());
    output->write("before\n");
    QCOMPARE(read(screen.get(), 8), std::string("before\r\n"));

    QCOMPARE(::tcflow(terminal.get(), TCOOFF), 0);  // Ctrl-S
    for (int i = 0; i < 1000; ++i) output->write("meanwhile\n");
    QCOMPARE(::tcflow(terminal.get(), TCOON), 0);  // Ctrl-Q
    QCOMPARE(read(screen.get(), 1000 * 11).size(), std::size_t{1000 * 11});
    QCOMPARE(::tcflow(terminal.get(), TCOOFF), 0);
    output->write("never seen\n");
    output.reset();
  }

  // Its last room may be that of a letter, which is none for the end of a line.
  void the_end_does_not_wait_for_a_terminal_that_nobody_looks_at() {
    for (const std::size_t letters : {1, 2, 3, 4}) {
      int ends[2];
      QCOMPARE(::openpty(&ends[0], &ends[1], nullptr, nullptr, nullptr), 0);
      const UniqueFd screen(ends[0]), terminal(ends[1]);
      auto output = std::make_unique<OutputThread>(terminal.get());
      for (int i = 0; i < 20'000; ++i) output->write(std::string(letters, 'z') + "\n");
      const auto began = Clock::now();

      output.reset();

      QVERIFY(Clock::now() - began < kLimit);
    }
  }

  void a_reader_that_went_away_is_no_end_of_the_program() {
    Pipe pipe;
    auto output = std::make_unique<OutputThread>(pipe.writing.get());
    pipe.reading.reset();
    const auto began = Clock::now();

    for (int i = 0; i < 1000; ++i) output->write(line(i));
    output.reset();

    QVERIFY(Clock::now() - began < kLimit);
  }
};

}  // namespace atl

QTEST_APPLESS_MAIN(atl::OutputThreadTest)
#include "output_thread_test.moc"
