#include "tests/wan/wan_emulator.h"

#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>

#include <QtTest>
#include <cstring>

namespace atl::wan {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kHeaders = sizeof(iphdr) + sizeof(tcphdr);
constexpr std::size_t kPayload = 1460;

// A TCP packet of `payload` bytes as the kernel hands it over before it is cut.
std::vector<std::byte> tcp_packet(std::size_t payload, std::uint32_t sequence = 1000) {
  std::vector<std::byte> bytes(kVirtioHeaderBytes + kHeaders + payload);
  VirtioHeader virtio{};
  virtio.flags = VirtioHeader::kNeedsChecksum;
  virtio.gso_type = payload > kPayload ? VirtioHeader::kTcp4 : VirtioHeader::kNotCut;
  virtio.gso_size = payload > kPayload ? kPayload : 0;
  iphdr ip{};
  ip.version = 4;
  ip.ihl = 5;
  ip.id = htons(7);
  ip.protocol = IPPROTO_TCP;
  ip.tot_len = htons(static_cast<std::uint16_t>(kHeaders + payload));
  ip.saddr = htonl(0x0a4d0001);
  ip.daddr = htonl(0x0a4d0002);
  tcphdr tcp{};
  tcp.doff = 5;
  tcp.seq = htonl(sequence);
  tcp.psh = 1;
  tcp.fin = 1;
  std::memcpy(bytes.data(), &virtio, sizeof virtio);
  std::memcpy(bytes.data() + kVirtioHeaderBytes, &ip, sizeof ip);
  std::memcpy(bytes.data() + kVirtioHeaderBytes + sizeof ip, &tcp, sizeof tcp);
  for (std::size_t i = 0; i < payload; ++i) bytes[kVirtioHeaderBytes + kHeaders + i] = static_cast<std::byte>(i % 251);
  return bytes;
}

template <class T>
T field(std::span<const std::byte> packet, std::size_t offset) {
  T value;
  std::memcpy(&value, packet.data() + offset, sizeof value);
  return value;
}

struct Arrival {
  WanTime at;
  std::size_t payload;
  std::uint32_t sequence;
};

// Sends packets at given times and looks every 10 us.
struct Bench {
  explicit Bench(WanPath path, WanHostRates rates = {}, milliseconds queue = milliseconds(100), std::uint64_t seed = 1)
      : emulator(2, queue, seed) {
    emulator.path(0, 1) = path;
    emulator.host(0) = rates;
    emulator.host(1) = rates;
  }
  void send(std::size_t payload, std::uint32_t sequence = 1000) {
    const auto bytes = tcp_packet(payload, sequence);
    PacketArena::Slice slice = arena.reserve();
    std::memcpy(slice.view().data(), bytes.data(), bytes.size());
    slice = arena.keep(std::move(slice), bytes.size());
    const auto shape = shape_of(slice.view());
    emulator.accept(0, 1, std::move(slice), *shape, now, arena);
  }
  void run_until(WanTime end) {
    for (; now <= end; now += std::chrono::microseconds(10)) {
      emulator.advance(now, [&](int, std::span<const std::byte> packet) {
        const auto tcp = field<tcphdr>(packet, kVirtioHeaderBytes + sizeof(iphdr));
        arrivals.push_back({now, packet.size() - kVirtioHeaderBytes - kHeaders, ntohl(tcp.seq)});
      });
    }
  }

  WanEmulator emulator;
  PacketArena arena;
  WanTime now{0};
  std::vector<Arrival> arrivals;
};

}  // namespace

class WanEmulatorTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_packet_arrives_after_its_own_time_on_the_link_and_the_delay();
  void rates_in_a_row_delay_a_packet_once();
  void a_large_packet_counts_the_headers_of_its_segments();
  void a_full_queue_drops_the_segments_that_do_not_fit();
  void each_segment_is_lost_with_its_probability();
  void losses_are_the_same_for_the_same_seed();
  void a_cut_path_swallows_what_is_under_way();
  void two_senders_share_a_downlink();
  void cut_segments_carry_their_own_headers();
  void a_packet_whose_lengths_do_not_fit_is_no_packet();
};

void WanEmulatorTest::a_packet_arrives_after_its_own_time_on_the_link_and_the_delay() {
  Bench bench({.bits_per_second = 12e6, .delay = milliseconds(40)});

  bench.send(kPayload);  // 1500 bytes: 1 ms
  bench.run_until(milliseconds(60));

  QCOMPARE(bench.arrivals.size(), std::size_t{1});
  QCOMPARE(bench.arrivals[0].at, WanTime(milliseconds(41)));
}

void WanEmulatorTest::rates_in_a_row_delay_a_packet_once() {
  Bench bench({.bits_per_second = 12e6, .delay = milliseconds(10)}, {12e6, 12e6});

  for (int i = 0; i < 3; ++i) bench.send(kPayload);
  bench.run_until(milliseconds(60));

  QCOMPARE(bench.arrivals.size(), std::size_t{3});
  QCOMPARE(bench.arrivals[0].at, WanTime(milliseconds(11)));
  QCOMPARE(bench.arrivals[2].at, WanTime(milliseconds(13)));
}

void WanEmulatorTest::a_large_packet_counts_the_headers_of_its_segments() {
  Bench bench({.bits_per_second = 12e6});

  bench.send(10 * kPayload);  // ten packets of 1500 bytes
  bench.run_until(milliseconds(20));

  QCOMPARE(bench.arrivals.size(), std::size_t{1});
  QCOMPARE(bench.arrivals[0].at, WanTime(milliseconds(10)));
  QCOMPARE(bench.emulator.counts(0, 1).carried, std::int64_t{10});
}

void WanEmulatorTest::a_full_queue_drops_the_segments_that_do_not_fit() {
  Bench bench({.bits_per_second = 12e6}, {}, milliseconds(15));

  bench.send(10 * kPayload, 0);
  bench.send(10 * kPayload, 14600);  // five of them fit
  bench.run_until(milliseconds(30));

  QCOMPARE(bench.arrivals.size(), std::size_t{2});
  QCOMPARE(bench.arrivals[1].payload, 5 * kPayload);
  QCOMPARE(bench.arrivals[1].at, WanTime(milliseconds(15)));
  QCOMPARE(bench.emulator.counts(0, 1).dropped, std::int64_t{5});
}

void WanEmulatorTest::each_segment_is_lost_with_its_probability() {
  Bench bench({.loss = 0.01});

  for (int i = 0; i < 2000; ++i) bench.send(40 * kPayload);
  bench.run_until(milliseconds(1));

  const WanCounts& counts = bench.emulator.counts(0, 1);
  QCOMPARE(counts.lost + counts.carried, std::int64_t{80'000});
  QVERIFY2(counts.lost > 650 && counts.lost < 950, qPrintable(QString::number(counts.lost)));  // 800 +- 5 deviations
}

void WanEmulatorTest::losses_are_the_same_for_the_same_seed() {
  const auto lost_bytes = [](std::uint64_t seed, std::size_t segments_a_packet) {
    Bench bench({.loss = 0.05}, {}, milliseconds(100), seed);
    for (std::size_t i = 0; i < 400 / segments_a_packet; ++i) {
      bench.send(segments_a_packet * kPayload, static_cast<std::uint32_t>(i * segments_a_packet * kPayload));
    }
    bench.run_until(milliseconds(1));
    std::vector<bool> arrived(400);
    for (const Arrival& arrival : bench.arrivals) {
      for (std::size_t i = 0; i < arrival.payload / kPayload; ++i) arrived[arrival.sequence / kPayload + i] = true;
    }
    return arrived;
  };

  QCOMPARE(lost_bytes(3, 20), lost_bytes(3, 20));
  QCOMPARE(lost_bytes(3, 20), lost_bytes(3, 1));  // however the kernel grouped them
  QVERIFY(lost_bytes(3, 20) != lost_bytes(4, 20));
}

void WanEmulatorTest::a_cut_path_swallows_what_is_under_way() {
  Bench bench({.delay = milliseconds(10)});

  bench.send(kPayload);
  bench.run_until(milliseconds(5));
  bench.emulator.path(0, 1).cut = true;
  bench.send(kPayload);
  bench.run_until(milliseconds(30));
  bench.emulator.path(0, 1).cut = false;
  bench.send(kPayload);
  bench.run_until(milliseconds(60));

  QCOMPARE(bench.arrivals.size(), std::size_t{1});
  QCOMPARE(bench.emulator.counts(0, 1).cut, std::int64_t{2});
}

void WanEmulatorTest::two_senders_share_a_downlink() {
  WanEmulator emulator(3, milliseconds(100), 1);
  emulator.host(2).down_bits_per_second = 12e6;
  emulator.path(0, 2).delay = milliseconds(50);  // its packets do not hold the other's up
  PacketArena arena;
  for (int from : {0, 1}) {
    const auto bytes = tcp_packet(kPayload);
    PacketArena::Slice slice = arena.reserve();
    std::memcpy(slice.view().data(), bytes.data(), bytes.size());
    slice = arena.keep(std::move(slice), bytes.size());
    emulator.accept(from, 2, slice, *shape_of(slice.view()), WanTime{0}, arena);
    emulator.accept(from, 2, slice, *shape_of(slice.view()), WanTime{0}, arena);
  }

  std::vector<WanTime> arrivals;
  for (WanTime now{0}; now < milliseconds(60); now += std::chrono::microseconds(100)) {
    emulator.advance(now, [&](int, std::span<const std::byte>) { arrivals.push_back(now); });
  }

  const std::vector<WanTime> expected{milliseconds(1), milliseconds(2), milliseconds(51), milliseconds(52)};
  QCOMPARE(arrivals, expected);
}

void WanEmulatorTest::cut_segments_carry_their_own_headers() {
  const auto packet = tcp_packet(3 * kPayload + 100, 5000);
  const auto shape = shape_of(packet);
  QVERIFY(shape.has_value());
  QCOMPARE(shape->segments(), std::int64_t{4});
  std::vector<std::byte> out(packet.size());

  const std::size_t middle = cut_segments(packet, *shape, 1, 2, out);

  const auto ip = field<iphdr>(out, kVirtioHeaderBytes);
  const auto tcp = field<tcphdr>(out, kVirtioHeaderBytes + sizeof(iphdr));
  QCOMPARE(middle, kVirtioHeaderBytes + kHeaders + 2 * kPayload);
  QCOMPARE(ntohs(ip.tot_len), static_cast<std::uint16_t>(kHeaders + 2 * kPayload));
  QCOMPARE(ntohs(ip.id), std::uint16_t{8});
  QCOMPARE(ntohl(tcp.seq), static_cast<std::uint32_t>(5000 + kPayload));
  QVERIFY(!tcp.fin && !tcp.psh);
  QCOMPARE(field<VirtioHeader>(out, 0).gso_size, static_cast<std::uint16_t>(kPayload));
  QCOMPARE(std::memcmp(out.data() + kVirtioHeaderBytes + kHeaders,
                       packet.data() + kVirtioHeaderBytes + kHeaders + kPayload, 2 * kPayload),
           0);

  const std::size_t last = cut_segments(packet, *shape, 3, 1, out);

  QCOMPARE(last, kVirtioHeaderBytes + kHeaders + 100);
  QCOMPARE(field<VirtioHeader>(out, 0).gso_type, VirtioHeader::kNotCut);
  const auto end = field<tcphdr>(out, kVirtioHeaderBytes + sizeof(iphdr));
  QVERIFY(end.fin && end.psh);
}

void WanEmulatorTest::a_packet_whose_lengths_do_not_fit_is_no_packet() {
  auto packet = tcp_packet(2 * kPayload);

  QVERIFY(!shape_of(std::span(packet).first(20)));
  QVERIFY(!shape_of(std::span(packet).first(kVirtioHeaderBytes + sizeof(iphdr))));
  packet[kVirtioHeaderBytes] = std::byte{0x60};  // IPv6
  QVERIFY(!shape_of(packet));
}

}  // namespace atl::wan

QTEST_GUILESS_MAIN(atl::wan::WanEmulatorTest)
#include "wan_emulator_test.moc"
