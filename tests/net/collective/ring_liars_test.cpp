// What an all-reduce does with a member that does not keep to the protocol or to its word, dies, or says nothing: it
// ends in a named error, the member is named, and nothing stays open.
#include <poll.h>

#include <QtTest>
#include <thread>

#include "net/collective/attempt_context.h"
#include "net/transport/socket.h"
#include "tests/fakes/patience.h"
#include "tests/net/collective/fault_parts.h"
#include "tests/net/collective/slow_link.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t kNumel = 3'000'000;
constexpr std::int64_t kMoreThanSocketsHold = 20'000'000;  // fp32 values

// Rank 1 of a ring of two, once its edges stand.
struct Liar {
  const AllReduceSpec& spec;
  const EdgeSchedule& edge;  // to rank 0
  RingEdges& edges;

  void say(ByteView bytes, std::size_t lane = 0) const {
    (void)edges.to_next[lane].write_all(bytes, Deadline::after(10s));
  }
  void say_header(const RingFrameHeader& header) const { say(encoded(header)); }
  RingFrameHeader header(std::uint32_t sequence) const { return frame_header(spec, edge, sequence); }
  RingReceiptMessage receipt(std::uint64_t bytes) const {
    return encode(RingReceipt{spec.round, spec.attempt, spec.fragment, static_cast<std::uint32_t>(bytes), bytes});
  }
  void say_back(ByteView bytes) const { (void)edges.from_previous[0].write_all(bytes, Deadline::after(10s)); }
};

using Lie = void (*)(const Liar&);

struct Case {
  const char* name;
  Lie lie;
  ErrorCode code;
  const char* words;
};

const Case kCases[] = {
    {"garbage", [](const Liar& liar) { liar.say(Bytes(64, std::byte{0x5a})); }, ErrorCode::kProtocol, "no frame"},
    {"a frame cut short",
     [](const Liar& liar) {
       liar.say_header(liar.header(0));
       liar.say(Bytes(100));
       liar.edges.to_next.clear();
     },
     ErrorCode::kPeerLost, ""},
    {"a frame of an attempt gone by",
     [](const Liar& liar) {
       RingFrameHeader header = liar.header(0);
       header.attempt.value -= 1;
       liar.say_header(header);
     },
     ErrorCode::kProtocol, "a frame of round 3 attempt 0"},
    {"a frame of a round gone by",
     [](const Liar& liar) {
       RingFrameHeader header = liar.header(0);
       header.round.value -= 1;
       liar.say_header(header);
     },
     ErrorCode::kProtocol, "a frame of round 2"},
    {"a frame of another fragment",
     [](const Liar& liar) {
       RingFrameHeader header = liar.header(0);
       header.fragment.value += 1;
       liar.say_header(header);
     },
     ErrorCode::kProtocol, "a frame of round 3 attempt 1, fragment 1"},
    {"a keepalive of another fragment",
     [](const Liar& liar) {
       liar.say_header({.type = RingFrameType::kKeepalive,
                        .round = liar.spec.round,
                        .attempt = liar.spec.attempt,
                        .fragment = FragmentId{1}});
     },
     ErrorCode::kProtocol, "a frame of round 3 attempt 1, fragment 1"},
    {"a frame replayed",
     [](const Liar& liar) {
       for (int i = 0; i < 2; ++i) {
         liar.say_header(liar.header(1));
         liar.say(Bytes(liar.header(1).length));
       }
     },
     ErrorCode::kProtocol, "frame 1 a second time"},
    {"a frame longer than its place",
     [](const Liar& liar) {
       RingFrameHeader header = liar.header(0);
       header.length += 1;
       liar.say_header(header);
     },
     ErrorCode::kProtocol, "frame 0 has"},
    {"a frame shorter than its place",
     [](const Liar& liar) {
       RingFrameHeader header = liar.header(0);
       header.length = 0;
       liar.say_header(header);
     },
     ErrorCode::kProtocol, "frame 0 has 0 bytes"},
    {"a frame of gigabytes",
     [](const Liar& liar) {
       RingFrameHeader header = liar.header(0);
       header.length = 0xffff'ff00;
       liar.say_header(header);
     },
     ErrorCode::kProtocol, "bytes long"},
    {"a frame for another place",
     [](const Liar& liar) {
       RingFrameHeader header = liar.header(0);
       header.offset = std::uint64_t{1} << 60;
       liar.say_header(header);
     },
     ErrorCode::kProtocol, "frame 0 has"},
    {"a result that passes for a partial sum",
     [](const Liar& liar) {
       RingFrameHeader header = liar.header(0);
       header.phase = RingPhase::kAllGather;
       liar.say_header(header);
     },
     ErrorCode::kProtocol, "frame 0 has"},
    {"a frame that is not in the schedule",
     [](const Liar& liar) {
       RingFrameHeader header = liar.header(0);
       header.sequence = liar.edge.frames();
       liar.say_header(header);
     },
     ErrorCode::kProtocol, ": frame "},
    {"a keepalive with a payload",
     [](const Liar& liar) {
       RingFrameHeader header = liar.header(0);
       header.type = RingFrameType::kKeepalive;
       liar.say_header(header);
     },
     ErrorCode::kProtocol, "a keepalive with a payload"},
    {"bytes against the ring's direction", [](const Liar& liar) { liar.say_back(Bytes(1)); }, ErrorCode::kProtocol,
     "against the ring's direction"},
    {"a receipt that is none",
     [](const Liar& liar) {
       RingReceiptMessage receipt = liar.receipt(1);
       receipt[5] = std::byte{1};
       liar.say_back(receipt);
     },
     ErrorCode::kProtocol, "against the ring's direction"},
    {"half a receipt as one", [](const Liar& liar) { liar.say_back(ByteView(liar.receipt(1)).first(14)); },
     ErrorCode::kProtocol, "against the ring's direction"},
    {"more receipts than there can be",
     [](const Liar& liar) {
       for (std::uint64_t bytes = 1; bytes < 1'000; ++bytes) liar.say_back(liar.receipt(bytes));
     },
     ErrorCode::kProtocol, "against the ring's direction"},
    {"receipts of attempts gone by without end",
     [](const Liar& liar) {
       const RingReceipt late{liar.spec.round, Attempt{0}, liar.spec.fragment, 1, 1};
       for (int i = 0; i < 1'000; ++i) liar.say_back(encode(late));
     },
     ErrorCode::kProtocol, "against the ring's direction"},
    {"a receipt in the ring's direction",
     [](const Liar& liar) {
       liar.say(liar.receipt(1));
       liar.say(Bytes(64));
     },
     ErrorCode::kProtocol, "no frame"},
    {"another hello instead of frames",
     [](const Liar& liar) {
       RingHello hello;
       hello.from = liar.spec.order[1].id;
       for (std::size_t lane = 0; lane < liar.edges.to_next.size(); ++lane) liar.say(encode(hello), lane);
     },
     ErrorCode::kTimeout, "sent nothing"},
    {"an end instead of frames", [](const Liar& liar) { liar.edges.to_next.clear(); }, ErrorCode::kPeerLost, ""},
};

}  // namespace

class RingLiarsTest : public QObject {
  Q_OBJECT

  OpenThings before_;

  void verify_named(const std::vector<MemberResult>& results, const IslandId& guilty, ErrorCode code) {
    bool named = false;
    for (const MemberResult& result : results) {
      QVERIFY(!result.ok());
      const AllReduceFailure& failure = result.failure();
      named = named || (failure.error.code == code && failure.peer == guilty);
      // Others learn of it when their neighbour closes.
      QVERIFY2(failure.error.code == code || failure.error.code == ErrorCode::kPeerLost, message_of(result).c_str());
    }
    QVERIFY2(named, message_of(results.front()).c_str());
  }

 private Q_SLOTS:
  // What OpenSSL and the sanitizers open once is open before anything is counted.
  void initTestCase() {
    LoopbackRing ring(2);
    for (const MemberResult& result : ring.run(ring.spec(WireFormat::kFp32), some_inputs(2, 1'000))) {
      QVERIFY2(result.ok(), message_of(result).c_str());
    }
  }
  void init() { before_ = OpenThings::now(); }
  void cleanup() { verify_nothing_stays_open(before_); }

  void a_member_that_breaks_the_protocol_is_named_data();
  void a_member_that_breaks_the_protocol_is_named();
  void a_receipt_where_none_was_agreed_upon_names_its_sender_data();
  void a_receipt_where_none_was_agreed_upon_names_its_sender();
  void receipts_that_lie_harm_nobody_else();
  void a_hello_that_lies_about_the_payload_is_refused_data();
  void a_hello_that_lies_about_the_payload_is_refused();
  void a_hello_that_promises_more_bytes_than_come_is_not_waited_for();
  void a_result_before_its_parts_were_sent_is_not_taken();
  void a_member_of_another_run_is_not_let_in();
  void a_member_that_dies_is_named_at_once();
  void a_member_that_stops_is_named_within_the_silence_timeout();
  void a_connection_that_only_one_end_knows_to_be_over_ends_the_attempt_data();
  void a_connection_that_only_one_end_knows_to_be_over_ends_the_attempt();
  void keepalives_without_end_are_not_listened_to_for_ever();
  void a_member_that_sends_keepalives_but_no_data_is_named_data();
  void a_member_that_sends_keepalives_but_no_data_is_named();
  void after_a_liar_the_same_ring_succeeds_without_it();
};

void RingLiarsTest::a_member_that_breaks_the_protocol_is_named_data() {
  QTest::addColumn<int>("index");
  for (int i = 0; i < static_cast<int>(std::size(kCases)); ++i) QTest::newRow(kCases[i].name) << i;
}

void RingLiarsTest::a_member_that_breaks_the_protocol_is_named() {
  QFETCH(int, index);
  const Case& lie = kCases[index];
  LoopbackRing ring(2);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.silence_timeout = 2'000ms * kSlowdown;
  const Inputs inputs = some_inputs(2, kNumel);
  const EdgeSchedule edge(payload_of(spec, kNumel), 2, Rank{1});
  const auto begin = Clock::now();

  std::optional<RingEdges> edges;
  std::jthread liar([&] {
    edges.emplace(ring.edges_of(1, spec, kNumel));
    lie.lie({spec, edge, *edges});
  });
  const MemberResult result = ring.run_member(0, spec, inputs[0], ring.abort);
  liar.join();

  QVERIFY(Clock::now() - begin < test::kForEver);
  QVERIFY(!result.ok());
  QVERIFY2(message_of(result).find(lie.words) != std::string::npos, message_of(result).c_str());
  QCOMPARE(result.failure().error.code, lie.code);
  QCOMPARE(result.failure().peer->value, ring.id(1).value);
}

void RingLiarsTest::a_receipt_where_none_was_agreed_upon_names_its_sender_data() {
  QTest::addColumn<int>("older");
  QTest::newRow("by who dials") << 0;
  QTest::newRow("by who listens") << 1;
}

void RingLiarsTest::a_receipt_where_none_was_agreed_upon_names_its_sender() {
  QFETCH(const int, older);
  LoopbackRing ring(2, {older});
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.silence_timeout = 2'000ms * kSlowdown;
  const Inputs inputs = some_inputs(2, kNumel);
  const EdgeSchedule edge(payload_of(spec, kNumel), 2, Rank{1});

  std::optional<RingEdges> edges;
  std::jthread liar([&] {
    edges.emplace(ring.edges_of(1, spec, kNumel));
    const Liar says{spec, edge, *edges};
    says.say_back(says.receipt(1));
  });
  const MemberResult result = ring.run_member(0, spec, inputs[0], ring.abort);
  liar.join();

  QCOMPARE(edges->from_previous[0].alpn(), kAlpnRing);
  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kProtocol);
  QVERIFY(message_of(result).find("against the ring's direction") != std::string::npos);
  QCOMPARE(result.failure().peer->value, ring.id(1).value);
}

// As many as there may be, of bytes that were never sent and of clocks that jump: the attempt goes on.
void RingLiarsTest::receipts_that_lie_harm_nobody_else() {
  LoopbackRing ring(2);
  const AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  const Inputs inputs = some_inputs(2, kNumel);
  const EdgeSchedule edge(payload_of(spec, kNumel), 2, Rank{1});

  std::optional<RingEdges> edges;
  std::jthread liar([&] {
    edges.emplace(ring.edges_of(1, spec, kNumel));
    const Liar says{spec, edge, *edges};
    for (std::uint64_t i = 0; i < kLateReceipts; ++i) says.say_back(says.receipt(i << 60 | i << 30 | i));
    says.say(Bytes(64, std::byte{0x5a}));  // this is what ends it
  });
  const MemberResult result = ring.run_member(0, spec, inputs[0], ring.abort);
  liar.join();

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kProtocol);
  QVERIFY2(message_of(result).find("no frame") != std::string::npos, message_of(result).c_str());
}

void RingLiarsTest::a_hello_that_lies_about_the_payload_is_refused_data() {
  QTest::addColumn<int>("field");
  QTest::addColumn<QString>("words");
  QTest::newRow("its length") << 0 << "a payload of 3000001 values instead of 3000000";
  QTest::newRow("its buckets") << 1 << "buckets of 256 values";
  QTest::newRow("its format") << 2 << "another wire format";
}

void RingLiarsTest::a_hello_that_lies_about_the_payload_is_refused() {
  QFETCH(int, field);
  QFETCH(QString, words);
  LoopbackRing ring(2);
  const AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  AllReduceSpec lies = spec;
  if (field == 1) lies.bucket_numel = kBlockNumel;
  if (field == 2) lies.wire = WireFormat::kBf16;
  const Inputs inputs = some_inputs(2, kNumel + 1);
  const std::span<const float> input(inputs[0]);

  MemberResult liar;
  std::jthread thread([&] {
    liar = ring.run_member(1, lies, field == 0 ? std::span<const float>(inputs[1]) : input.first(kNumel), ring.abort);
  });
  const MemberResult result = ring.run_member(0, spec, input.first(kNumel), ring.abort);
  thread.join();

  QVERIFY(!result.ok() && !liar.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kProtocol);
  QVERIFY2(message_of(result).find(words.toStdString()) != std::string::npos, message_of(result).c_str());
  QCOMPARE(result.failure().peer->value, ring.id(1).value);
}

void RingLiarsTest::a_hello_that_promises_more_bytes_than_come_is_not_waited_for() {
  LoopbackRing ring(2);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.silence_timeout = 1'000ms * kSlowdown;
  const Inputs inputs = some_inputs(2, 1'000);
  const auto begin = Clock::now();

  std::optional<TlsConnection> connection;
  std::jthread liar([&] {
    auto dialled =
        TlsConnection::connect(spec.order[0].address, *ring.island(1).dial_context, ring.id(0), Deadline::after(1min));
    connection.emplace(std::move(dialled).value());
    RingHello says;
    says.from = ring.id(1);
    const Bytes hello = encode(says);
    (void)connection->write_all(ByteView(hello).first(kRingHelloPrefixBytes + 3), Deadline::after(1min));
  });
  const MemberResult result = ring.run_member(0, spec, inputs[0], ring.abort);
  liar.join();

  QVERIFY(Clock::now() - begin < test::kForEver);
  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kTimeout);
  QCOMPARE(result.failure().peer->value, ring.id(1).value);
}

void RingLiarsTest::a_result_before_its_parts_were_sent_is_not_taken() {
  LoopbackRing ring(2);
  AllReduceSpec spec = ring.spec(WireFormat::kFp32);
  spec.silence_timeout = 1'500ms * kSlowdown;
  const Inputs inputs = some_inputs(2, kMoreThanSocketsHold);
  const EdgeSchedule edge(payload_of(spec, kMoreThanSocketsHold), 2, Rank{1});
  AbortSignal end;

  std::jthread liar([&] {  // takes nothing, so that rank 0 cannot have sent its last part
    RingEdges edges = ring.edges_of(1, spec, kMoreThanSocketsHold);
    const Liar says{spec, edge, edges};
    says.say_header(says.header(edge.frames() - 1));
    const auto keepalive = encoded({.type = RingFrameType::kKeepalive, .round = spec.round, .attempt = spec.attempt});
    pollfd wait{end.fd(), POLLIN, 0};
    while (!end.raised() && edges.to_next[1].try_write(keepalive).ok()) (void)::poll(&wait, 1, 100);
  });
  const MemberResult result = ring.run_member(0, spec, inputs[0], ring.abort);
  end.raise("the test ends");
  liar.join();

  QVERIFY(!result.ok());
  const bool early = message_of(result).find("before what it is made of was sent") != std::string::npos;
  const bool stuck = message_of(result).find("took nothing") != std::string::npos;
  QVERIFY2(early || stuck, message_of(result).c_str());
  QCOMPARE(result.failure().peer->value, ring.id(1).value);
}

void RingLiarsTest::a_member_of_another_run_is_not_let_in() {
  LoopbackRing ring(2);
  LoopbackRing other(2);  // an authority of its own
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.order[1].address = other.spec(WireFormat::kInt8Block).order[1].address;
  const Inputs inputs = some_inputs(2, 1'000);

  const MemberResult result = ring.run_member(0, spec, inputs[0], ring.abort);

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kCertificate);
  QCOMPARE(result.failure().peer->value, ring.id(1).value);
}

void RingLiarsTest::a_member_that_dies_is_named_at_once() {
  LoopbackRing ring(3);
  const AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  const Inputs inputs = some_inputs(3, kNumel);
  const auto begin = Clock::now();

  std::jthread dying([&] {
    RingEdges edges = ring.edges_of(1, spec, kNumel);
    const EdgeSchedule edge(payload_of(spec, kNumel), 3, Rank{1});
    const Liar says{spec, edge, edges};
    says.say_header(says.header(0));
    says.say(Bytes(says.header(0).length / 2));
  });
  const auto results = ring.run(spec, inputs, {0, 2});
  dying.join();

  QVERIFY(Clock::now() - begin < spec.silence_timeout);
  verify_named(results, ring.id(1), ErrorCode::kPeerLost);
}

void RingLiarsTest::a_member_that_stops_is_named_within_the_silence_timeout() {
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.silence_timeout = 1'500ms * kSlowdown;
  const Inputs inputs = some_inputs(3, kNumel);
  AbortSignal end;
  const auto begin = Clock::now();

  std::jthread stopped([&] {
    const RingEdges edges = ring.edges_of(1, spec, kNumel);
    (void)wait_ready(end.fd(), POLLIN, Deadline::after(1min), nullptr, "test");
  });
  const auto results = ring.run(spec, inputs, {0, 2});
  const auto took = Clock::now() - begin;
  end.raise("the test ends");
  stopped.join();

  QVERIFY(took < test::kForEver);
  verify_named(results, ring.id(1), ErrorCode::kTimeout);
}

void RingLiarsTest::a_connection_that_only_one_end_knows_to_be_over_ends_the_attempt_data() {
  QTest::addColumn<bool>("dialler_knows");
  QTest::newRow("the one that sends") << true;
  QTest::newRow("the one that receives") << false;
}

void RingLiarsTest::a_connection_that_only_one_end_knows_to_be_over_ends_the_attempt() {
  QFETCH(bool, dialler_knows);
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.connections_per_edge = 1;  // of several, one may end before its hello was read: nobody knows whose it was
  const Inputs inputs = some_inputs(3, 6'000'000);
  SlowLink link(spec.order[1].address);
  link.half_close_after(1'000'000, dialler_knows);
  spec.order[1].address = link.address();
  const auto begin = Clock::now();

  const auto results = ring.run(spec, inputs);

  QVERIFY(Clock::now() - begin < spec.silence_timeout);
  for (const MemberResult& result : results) {
    QVERIFY(!result.ok());
    QCOMPARE(result.failure().error.code, ErrorCode::kPeerLost);
  }
  const std::size_t knows = dialler_knows ? 0 : 1;
  QCOMPARE(results[knows].failure().peer->value, ring.id(dialler_knows ? 1 : 0).value);
}

void RingLiarsTest::keepalives_without_end_are_not_listened_to_for_ever() {
  LoopbackRing ring(2);
  const AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  std::optional<RingEdges> flooded;
  std::jthread accepts([&] { flooded.emplace(ring.edges_of(0, spec, kNumel)); });
  RingEdges edges = ring.edges_of(1, spec, kNumel);
  accepts.join();
  RingInbox& inbox = ring.island(0).inbox;
  std::vector<RingInbox::Parked> parked;
  parked.push_back({std::move(flooded->from_previous[0]), {}});
  inbox.park(FragmentId{}, std::move(parked));

  AbortSignal end;
  std::jthread flood([&] {
    const auto keepalive = encoded({.type = RingFrameType::kKeepalive, .round = spec.round, .attempt = spec.attempt});
    Bytes many;
    for (int i = 0; i < 512; ++i) many.insert(many.end(), keepalive.begin(), keepalive.end());
    while (edges.to_next[0].write_all(many, Deadline::after(1min), &end).ok()) {
    }
  });
  RingHello expected;
  expected.from = ring.id(1);
  std::atomic<bool> returned{false};
  std::jthread patience([&] {  // so that a failure is one, and not a test without end
    const Deadline deadline = Deadline::after(5s * kSlowdown);
    while (!returned && !deadline.expired()) std::this_thread::sleep_for(10ms);
    end.raise("the test ends");
  });
  const auto taken = inbox.take(expected, Deadline::after(300ms), ring.abort);
  const bool in_time = !end.raised();
  returned = true;
  patience.join();
  flood.join();

  QVERIFY(in_time);
  QVERIFY(!taken.ok());
  QCOMPARE(taken.error().code, ErrorCode::kTimeout);
}

void RingLiarsTest::a_member_that_sends_keepalives_but_no_data_is_named_data() {
  QTest::addColumn<std::uint64_t>("promises");
  QTest::addColumn<bool>("believed");
  QTest::newRow("and does not say that it waits") << std::uint64_t{0} << false;
  QTest::newRow("and waits itself") << std::uint64_t{1'000'000} << true;
}

// One that waits itself is given time: here until it goes, twice as long as the other is waited for.
void RingLiarsTest::a_member_that_sends_keepalives_but_no_data_is_named() {
  QFETCH(std::uint64_t, promises);
  QFETCH(bool, believed);
  constexpr std::int64_t kLittle = 100'000;  // the sockets hold what rank 0 sends
  LoopbackRing ring(2);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  spec.silence_timeout = 400ms * kSlowdown;
  const Inputs inputs = some_inputs(2, kLittle);
  AbortSignal end;

  std::jthread idles([&] {
    RingEdges edges = ring.edges_of(1, spec, kLittle);
    const auto keepalive =
        encoded({.type = RingFrameType::kKeepalive, .round = spec.round, .attempt = spec.attempt, .offset = promises});
    const Deadline goes = Deadline::after(2 * kStallTimeouts * spec.silence_timeout);
    pollfd wait{end.fd(), POLLIN, 0};
    while (!end.raised() && !goes.expired() && edges.to_next[0].write_all(keepalive, goes).ok()) {
      (void)::poll(&wait, 1, 50);
    }
  });
  const MemberResult result = ring.run_member(0, spec, inputs[0], ring.abort);
  end.raise("the test ends");
  idles.join();

  verify_named_for_keepalives_alone(result, ring.id(1), believed);
}

void RingLiarsTest::after_a_liar_the_same_ring_succeeds_without_it() {
  LoopbackRing ring(3);
  AllReduceSpec spec = ring.spec(WireFormat::kInt8Block);
  const Inputs inputs = some_inputs(3, kNumel);
  std::optional<RingEdges> edges;  // open until it is named
  std::jthread liar([&] {
    edges.emplace(ring.edges_of(1, spec, kNumel));
    (void)edges->to_next[0].write_all(Bytes(500, std::byte{0x41}), Deadline::after(1min));
  });
  verify_named(ring.run(spec, inputs, {0, 2}), ring.id(1), ErrorCode::kProtocol);
  liar.join();
  edges.reset();
  if (QTest::currentTestFailed()) return;

  spec.attempt.value += 1;
  spec.order.erase(spec.order.begin() + 1);
  const auto results = ring.run(spec, inputs, {0, 2});

  QVERIFY2(results[0].ok() && results[1].ok(), message_of(results[0]).c_str());
  QVERIFY(results[0].canonical == results[1].canonical);
}

QTEST_GUILESS_MAIN(RingLiarsTest)
#include "ring_liars_test.moc"
