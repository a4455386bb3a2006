#include "tests/wan/wan_box.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <QtTest>
#include <csignal>
#include <thread>

#include "net/transport/socket.h"

namespace atl::wan {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

template <class T>
T require(Result<T> result) {
  if (!result.ok()) qFatal("%s", result.error().message.c_str());
  return std::move(result).value();
}

// A TCP connection from one host to another: both ends, each in its host.
struct Link {
  UniqueFd sender;
  UniqueFd receiver;
  Clock::time_point opened = Clock::now();
  std::int64_t received = 0;  // bytes, since it was opened
};

// In bits a second.
struct Goodput {
  double in_window = 0;
  double since_opened = 0;
};

Link open_link(const WanBox& box, int from, int to) {
  UniqueFd listener;
  {
    const InsideHost inside(box.host(to));
    listener = require(listen_tcp({"0.0.0.0", 0}));
  }
  Link link;
  const Deadline deadline = Deadline::after(seconds(10));
  {
    const InsideHost inside(box.host(from));
    link.sender = require(connect_tcp({box.address(to), local_port(listener.get())}, deadline, nullptr, "test"));
  }
  if (!wait_ready(listener.get(), POLLIN, deadline, nullptr, "test").ok()) qFatal("nobody connects");
  link.receiver.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  return link;
}

// Sends as fast as TCP takes it; what the receiver gets in `window` after `warm_up`, and in all.
Goodput goodput(Link& link, milliseconds warm_up, milliseconds window) {
  std::atomic<bool> done{false};
  std::jthread sending([&] {
    const std::vector<char> block(256 * 1024);
    while (!done) {
      (void)wait_ready(link.sender.get(), POLLOUT, Deadline::after(milliseconds(20)), nullptr, "test");
      (void)::send(link.sender.get(), block.data(), block.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
  });
  std::vector<char> block(256 * 1024);
  std::int64_t bytes = 0;
  auto begin = Clock::now();
  const auto counts_from = begin + warm_up;
  while (Clock::now() < counts_from + window) {
    (void)wait_ready(link.receiver.get(), POLLIN, Deadline::after(milliseconds(20)), nullptr, "test");
    const ssize_t count = ::recv(link.receiver.get(), block.data(), block.size(), MSG_DONTWAIT);
    link.received += std::max<ssize_t>(count, 0);
    if (Clock::now() < counts_from) {
      begin = Clock::now();
    } else if (count > 0) {
      bytes += count;
    }
  }
  const auto end = Clock::now();
  done = true;
  return {static_cast<double>(bytes) * 8 / Seconds(end - begin).count(),
          static_cast<double>(link.received) * 8 / Seconds(end - link.opened).count()};
}

// One byte there and back.
Result<milliseconds> round_trip(const Link& link, Deadline deadline) {
  const auto begin = Clock::now();
  char byte = 1;
  for (const auto& [out, in] :
       {std::pair{link.sender.get(), link.receiver.get()}, std::pair{link.receiver.get(), link.sender.get()}}) {
    (void)::send(out, &byte, 1, MSG_NOSIGNAL);
    ATOLL_RETURN_IF_ERROR(wait_ready(in, POLLIN, deadline, nullptr, "round trip"));
    (void)::recv(in, &byte, 1, 0);
  }
  return std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
}

bool at_most(double value, double expected, double tolerance) {
  if (value <= (1 + tolerance) * expected) return true;
  qWarning("%g, which is more than %g", value, expected);
  return false;
}

bool at_least(double value, double expected, double tolerance) {
  if (value >= (1 - tolerance) * expected) return true;
  qWarning("%g, which is less than %g", value, expected);
  return false;
}

// A machine that others share slows measurements down, many perhaps, but since a link was opened it never carried more
// than its rate, and no byte was there before its delay: every measurement has to show that. (Within a window, what a
// stall before it held back may come on top.) That rate and delay are reached one of twenty has to show.
template <class Measure>
bool is_rate(Measure measure, double expected, double tolerance) {
  for (int i = 0; i < 20; ++i) {
    const Goodput rate = measure();
    if (!at_most(rate.since_opened, expected, tolerance)) return false;
    if (at_most(rate.in_window, expected, tolerance) && at_least(rate.in_window, expected, tolerance)) return true;
  }
  return false;
}

template <class Measure>
bool is_time(Measure measure, double expected, double tolerance) {
  for (int i = 0; i < 20; ++i) {
    const double time = measure();
    if (!at_least(time, expected, tolerance)) return false;
    if (at_most(time, expected, tolerance)) return true;
  }
  return false;
}

}  // namespace

class WanBoxTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase();
  void a_path_carries_its_rate_and_no_more();
  void each_direction_has_its_own_rate();
  void a_round_trip_takes_the_delays_of_both_directions();
  void losses_are_as_many_as_asked_and_tcp_survives_them();
  void a_cut_stops_everything_and_a_restore_lets_it_go_on();
  void programs_run_inside_their_host();
  void a_program_dies_with_the_thread_that_started_it();
};

void WanBoxTest::initTestCase() {
  if (const auto reason = WanBox::unavailable()) QSKIP(reason->c_str());
}

void WanBoxTest::a_path_carries_its_rate_and_no_more() {
  const auto box = require(WanBox::create({.path = {.bits_per_second = 100e6, .delay = milliseconds(5)}}));
  Link link = open_link(*box, 0, 1);

  const auto rate = [&] { return goodput(link, milliseconds(500), milliseconds(1000)); };

  QVERIFY(is_rate(rate, 100e6 * 1448 / 1500, 0.1));  // TCP's share of a packet
}

void WanBoxTest::each_direction_has_its_own_rate() {
  const auto box = require(WanBox::create({.path = {.bits_per_second = 20e6, .delay = milliseconds(2)}}));
  box->change_path(1, 0, [](WanPath& path) { path.bits_per_second = 80e6; });

  const auto measured = [&](int from, int to) {
    Link link = open_link(*box, from, to);
    return goodput(link, milliseconds(300), milliseconds(700));
  };
  const auto there = [&] { return measured(0, 1); };
  const auto back = [&] { return measured(1, 0); };

  QVERIFY(is_rate(there, 20e6 * 1448 / 1500, 0.1));
  QVERIFY(is_rate(back, 80e6 * 1448 / 1500, 0.1));
}

void WanBoxTest::a_round_trip_takes_the_delays_of_both_directions() {
  const auto box = require(WanBox::create({.path = {.delay = milliseconds(30)}}));
  box->change_path(1, 0, [](WanPath& path) { path.delay = milliseconds(70); });
  const Link link = open_link(*box, 0, 1);

  const auto time = [&] { return static_cast<double>(require(round_trip(link, Deadline::after(seconds(5)))).count()); };

  QVERIFY(is_time(time, 100, 0.1));
}

void WanBoxTest::losses_are_as_many_as_asked_and_tcp_survives_them() {
  const auto box = require(WanBox::create({.path = {.bits_per_second = 50e6, .delay = milliseconds(5)}}));
  box->change_path(0, 1, [](WanPath& path) { path.loss = 0.01; });
  Link link = open_link(*box, 0, 1);

  const Goodput rate = goodput(link, milliseconds(0), milliseconds(2000));

  const WanCounts counts = box->counts(0, 1);
  const double share = static_cast<double>(counts.lost) / static_cast<double>(counts.lost + counts.carried);
  QVERIFY2(counts.carried > 500, qPrintable(QString::number(counts.carried)));
  QVERIFY2(share > 0.003 && share < 0.02, qPrintable(QString::number(share)));
  QVERIFY(rate.in_window > 1e6);
}

void WanBoxTest::a_cut_stops_everything_and_a_restore_lets_it_go_on() {
  const auto box = require(WanBox::create({.path = {.delay = milliseconds(1)}}));
  const Link link = open_link(*box, 0, 1);
  QVERIFY(round_trip(link, Deadline::after(seconds(5))).ok());

  box->cut(0, 1);
  const auto during = round_trip(link, Deadline::after(milliseconds(500)));
  box->restore(0, 1);

  QVERIFY(!during.ok());
  QCOMPARE(during.error().code, ErrorCode::kTimeout);
  // The kernel's next retransmission brings the byte over.
  QVERIFY(wait_ready(link.receiver.get(), POLLIN, Deadline::after(seconds(10)), nullptr, "after the cut").ok());
}

void WanBoxTest::programs_run_inside_their_host() {
  const auto box = require(WanBox::create({.hosts = 2, .congestion_control = "reno"}));

  WanProcess program = require(box->run_in(1, {"sh", "-c",
                                               "read word; cat /proc/sys/net/ipv4/tcp_congestion_control; grep -c wan0 "
                                               "/proc/net/dev; echo $word"}));
  QVERIFY(program.write_line("said").ok());

  QCOMPARE(require(program.read_line(Deadline::after(seconds(10)))), std::string("reno"));
  QCOMPARE(require(program.read_line(Deadline::after(seconds(10)))), std::string("1"));
  QCOMPARE(require(program.read_line(Deadline::after(seconds(10)))), std::string("said"));
  QCOMPARE(require(program.wait(Deadline::after(seconds(10)))), 0);
}

void WanBoxTest::a_program_dies_with_the_thread_that_started_it() {
  const auto box = require(WanBox::create({}));
  std::optional<WanProcess> program;

  std::jthread([&] {
    program.emplace(require(box->run_in(0, {"sh", "-c", "echo up; exec sleep 60"})));
    QCOMPARE(require(program->read_line(Deadline::after(seconds(10)))), std::string("up"));
  }).join();

  QCOMPARE(require(program->wait(Deadline::after(seconds(10)))), 128 + SIGKILL);
}

}  // namespace atl::wan

QTEST_GUILESS_MAIN(atl::wan::WanBoxTest)
#include "wan_box_test.moc"
