// A ring keeps to what its members' owners allow, each for itself, also when an owner changes it meanwhile. Times are
// measured only in the direction in which a busy machine cannot be wrong: so many bytes take at least so long.
#include <sys/socket.h>

#include <QtTest>
#include <thread>

#include "net/recovery/serving_pace.h"
#include "net/transport/socket.h"
#include "tests/net/collective/loopback_ring.h"

using namespace std::chrono_literals;

namespace atl {
namespace {

constexpr std::size_t kNumel = 8 << 20;  // some 8 MB of int8-block; in a ring of two each sends and receives as much
constexpr double kLimit = 4e6;           // bytes/s
// The kernel paces a connection from its eleventh segment on: 14 kB over the internet, but 64 KiB each on this machine.
constexpr std::uint64_t kUnpaced = 10 * 65'536;
constexpr double kSurely = 0.8;  // of the time that the limit asks for: bursts and buffers are far less

using Inputs = std::vector<std::vector<float>>;

Inputs inputs_of(int world_size) {
  Inputs inputs(static_cast<std::size_t>(world_size), std::vector<float>(kNumel));
  for (std::size_t i = 0; i < kNumel; ++i) {
    for (auto& input : inputs) input[i] = static_cast<float>(i % 251) / 251 - 0.5f;
  }
  return inputs;
}

// Each member with a specification of its own.
std::vector<MemberResult> run_each(LoopbackRing& ring, const std::vector<AllReduceSpec>& specs, const Inputs& inputs) {
  std::vector<MemberResult> results(specs.size());
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    threads.emplace_back(
        [&, i] { results[i] = ring.run_member(static_cast<int>(i), specs[i], inputs[i], ring.abort); });
  }
  threads.clear();
  return results;
}

void verify_all_agree(const std::vector<MemberResult>& results) {
  for (const MemberResult& result : results) {
    QVERIFY2(result.ok(), result.ok() ? "" : result.failure().error.message.c_str());
    QCOMPARE(result.report().digest, results[0].report().digest);
  }
}

double least_seconds(std::uint64_t bytes) { return kSurely * static_cast<double>(bytes) / kLimit; }

int receive_buffer(int fd) {
  int bytes = 0;
  socklen_t size = sizeof bytes;
  if (::getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &size) != 0) qFatal("no buffer");
  return bytes;
}

}  // namespace

class OwnersLimitsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_member_sends_no_faster_than_its_owner_allows_data();
  void a_member_sends_no_faster_than_its_owner_allows();
  void a_member_receives_no_faster_than_its_owner_allows_data();
  void a_member_receives_no_faster_than_its_owner_allows();
  void a_limit_that_comes_in_the_middle_holds();
  void a_limit_that_is_lifted_in_the_middle_holds_nobody_up();
  void who_is_not_read_by_the_owners_limit_is_not_silent_data();
  void who_is_not_read_by_the_owners_limit_is_not_silent();
  void a_slow_reader_has_a_small_buffer_as_long_as_it_is_slow();
};

void OwnersLimitsTest::a_member_sends_no_faster_than_its_owner_allows_data() {
  QTest::addColumn<int>("wire");
  QTest::addColumn<int>("schedule");
  const auto row = [](const char* name, WireFormat wire, Schedule schedule) {
    QTest::newRow(name) << static_cast<int>(wire) << static_cast<int>(schedule);
  };
  row("summed hop by hop", WireFormat::kInt8Block, Schedule::kRing);
  row("sent straight to the owners", WireFormat::kInt4E3m0, Schedule::kRing);
  row("directly", WireFormat::kInt8Block, Schedule::kDirect);
}

void OwnersLimitsTest::a_member_sends_no_faster_than_its_owner_allows() {
  QFETCH(int, wire);
  QFETCH(int, schedule);
  LoopbackRing ring(2);
  std::vector<AllReduceSpec> specs(2, ring.spec(static_cast<WireFormat>(wire)));
  for (AllReduceSpec& spec : specs) spec.schedule = static_cast<Schedule>(schedule);
  specs[0].connections_per_edge = 1;
  specs[0].most_bytes_per_second = [] { return std::optional(kLimit); };

  const auto results = run_each(ring, specs, inputs_of(2));

  verify_all_agree(results);
  const double took = results[0].report().duration.count();
  const std::uint64_t connections = sums_hop_by_hop(specs[0].wire) ? 1 : 2;
  QVERIFY2(took >= least_seconds(results[0].report().bytes_sent - connections * kUnpaced),
           qPrintable(QString::number(took)));
}

void OwnersLimitsTest::a_member_receives_no_faster_than_its_owner_allows_data() {
  a_member_sends_no_faster_than_its_owner_allows_data();
}

void OwnersLimitsTest::a_member_receives_no_faster_than_its_owner_allows() {
  QFETCH(int, wire);
  QFETCH(int, schedule);
  LoopbackRing ring(2);
  std::vector<AllReduceSpec> specs(2, ring.spec(static_cast<WireFormat>(wire)));
  for (AllReduceSpec& spec : specs) spec.schedule = static_cast<Schedule>(schedule);
  DownloadPace download(kLimit);
  specs[0].download = &download;

  const auto results = run_each(ring, specs, inputs_of(2));

  verify_all_agree(results);
  const double took = results[0].report().duration.count();
  QVERIFY2(took >= least_seconds(results[0].report().bytes_received), qPrintable(QString::number(took)));
}

// From the middle on; what came before went as fast as it could.
void OwnersLimitsTest::a_limit_that_comes_in_the_middle_holds() {
  LoopbackRing ring(2);
  std::vector<AllReduceSpec> specs(2, ring.spec(WireFormat::kInt8Block));
  ServingPace upload;
  DownloadPace download;
  std::atomic<std::uint64_t> done_then{0};
  std::atomic<Clock::rep> then{0};
  specs[0].most_bytes_per_second = [&] { return upload.left_to_ring(); };
  specs[0].download = &download;
  specs[0].on_progress = [&](const AllReduceProgress& progress) {
    if (download.allowed()) return;
    download.allow(kLimit);
    upload.allow(kLimit);
    done_then = progress.bytes_done;
    then = Clock::now().time_since_epoch().count();
  };
  // Slow enough that it is told of at all.
  specs[1].most_bytes_per_second = [&] { return std::optional(2 * kLimit); };

  const auto results = run_each(ring, specs, inputs_of(2));

  verify_all_agree(results);
  QVERIFY(then != 0);
  const Seconds took = Clock::now().time_since_epoch() - Clock::duration(then.load());
  const std::uint64_t rest = results[0].report().bytes_received - done_then;
  QVERIFY2(rest > 100'000, qPrintable(QString::number(rest)));
  QVERIFY2(took.count() >= least_seconds(rest), qPrintable(QString::number(took.count())));
}

// With the limits of the beginning, the least that an owner can set, it would take more than a minute.
void OwnersLimitsTest::a_limit_that_is_lifted_in_the_middle_holds_nobody_up() {
  LoopbackRing ring(2);
  std::vector<AllReduceSpec> specs(2, ring.spec(WireFormat::kInt8Block));
  ServingPace upload(125e3);
  DownloadPace download(125e3);
  specs[0].most_bytes_per_second = [&] { return upload.left_to_ring(); };
  specs[0].download = &download;
  std::jthread lifts([&] {
    QThread::msleep(300);
    upload.allow({});
    download.allow({});
  });

  const auto results = run_each(ring, specs, inputs_of(2));

  verify_all_agree(results);
  QVERIFY(results[0].report().duration < 40s);
}

void OwnersLimitsTest::who_is_not_read_by_the_owners_limit_is_not_silent_data() {
  QTest::addColumn<int>("schedule");
  QTest::newRow("round the ring") << static_cast<int>(Schedule::kRing);
  QTest::newRow("directly") << static_cast<int>(Schedule::kDirect);
}

// For five seconds nothing is read, with a silence timeout of two: nobody is to be blamed for it.
void OwnersLimitsTest::who_is_not_read_by_the_owners_limit_is_not_silent() {
  QFETCH(int, schedule);
  LoopbackRing ring(2);
  std::vector<AllReduceSpec> specs(2, ring.spec(WireFormat::kInt8Block));
  for (AllReduceSpec& spec : specs) spec.schedule = static_cast<Schedule>(schedule);
  DownloadPace download(8e6);
  download.has_read(DownloadPace::Use::kRing, 30'000'000, Clock::now());
  specs[0].download = &download;
  specs[0].silence_timeout = 2s;

  verify_all_agree(run_each(ring, specs, inputs_of(2)));
}

void OwnersLimitsTest::a_slow_reader_has_a_small_buffer_as_long_as_it_is_slow() {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM, 0));
  const int as_the_kernel_sizes_it = receive_buffer(socket.get());
  limit_receiving(socket.get(), 20'000.0);
  QCOMPARE(receive_buffer(socket.get()), 40'000);  // the kernel grants twice as much, for what it adds itself
  limit_receiving(socket.get(), {});

  constexpr int kBufferLocks = 72, kReceiveLock = 2;  // SO_BUF_LOCK
  int locks = kReceiveLock;
  socklen_t size = sizeof locks;
  if (::getsockopt(socket.get(), SOL_SOCKET, kBufferLocks, &locks, &size) != 0) QSKIP("a kernel before 5.14");
  QCOMPARE(locks & kReceiveLock, 0);  // it grows again

  const UniqueFd another(::socket(AF_INET, SOCK_STREAM, 0));
  limit_receiving(another.get(), 1e9);  // more than is granted
  QCOMPARE(receive_buffer(another.get()), as_the_kernel_sizes_it);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::OwnersLimitsTest)
#include "owners_limits_test.moc"
