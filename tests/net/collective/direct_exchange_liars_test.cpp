// What a direct exchange does with a member that does not keep to the protocol: it ends in a named error, the member is
// named, and nothing stays open.
#include <QtTest>
#include <thread>

#include "tests/net/collective/played_exchange.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

// What a member of two says to the other in place of its part. The first frames of either kind, for changing them.
struct Liar {
  PlayedPeer& member;
  std::size_t other;
  TlsConnection& connection;

  RingFrameHeader contribution() const { return member.contribution(other, 0); }
  RingFrameHeader sum() const { return member.sum(0); }
};

struct Case {
  const char* name;
  void (*lie)(std::optional<TlsConnection>& connection, const Liar& liar);
  ErrorCode code;
  const char* words;
};

template <class Change>
void say_changed(const Liar& liar, RingFrameHeader header, Change change) {
  change(header);
  say(liar.connection, header);
}

using Connection = std::optional<TlsConnection>;

const Case kCases[] = {
    {"garbage", [](Connection&, const Liar& liar) { say(liar.connection, Bytes(64, std::byte{0x5a})); },
     ErrorCode::kProtocol, "no frame"},
    {"a frame cut short",
     [](Connection& connection, const Liar& liar) {
       say(liar.connection, liar.contribution());
       say(liar.connection, Bytes(100));
       connection.reset();
     },
     ErrorCode::kPeerLost, ""},
    {"an end instead of frames", [](Connection& connection, const Liar&) { connection.reset(); }, ErrorCode::kPeerLost,
     ""},
    {"a frame of an attempt gone by",
     [](Connection&, const Liar& liar) {
       say_changed(liar, liar.contribution(), [](RingFrameHeader& header) { header.attempt.value -= 1; });
     },
     ErrorCode::kProtocol, "a frame of round 3 attempt 0"},
    {"a frame of a round gone by",
     [](Connection&, const Liar& liar) {
       say_changed(liar, liar.sum(), [](RingFrameHeader& header) { header.round.value -= 1; });
     },
     ErrorCode::kProtocol, "a frame of round 2"},
    {"a frame of another fragment",
     [](Connection&, const Liar& liar) {
       say_changed(liar, liar.contribution(), [](RingFrameHeader& header) { header.fragment.value += 1; });
     },
     ErrorCode::kProtocol, "a frame of round 3 attempt 1, fragment 1"},
    {"a keepalive of another fragment",
     [](Connection&, const Liar& liar) {
       say_changed(liar, liar.member.keepalive(), [](RingFrameHeader& header) { header.fragment.value += 1; });
     },
     ErrorCode::kProtocol, "a frame of round 3 attempt 1, fragment 1"},
    {"a contribution that is not the next",
     [](Connection&, const Liar& liar) { say(liar.connection, liar.member.contribution(liar.other, 1)); },
     ErrorCode::kProtocol, "frame 1 of the contributions"},
    {"a contribution replayed",
     [](Connection&, const Liar& liar) {
       say_frame(liar.connection, liar.contribution());
       say(liar.connection, liar.contribution());
     },
     ErrorCode::kProtocol, "frame 0 of the contributions"},
    {"one contribution more than there are",
     [](Connection&, const Liar& liar) {
       const std::size_t chunks = liar.member.chunks(liar.other);
       for (std::size_t i = 0; i < chunks; ++i) say_frame(liar.connection, liar.member.contribution(liar.other, i));
       say_changed(liar, liar.contribution(),
                   [&](RingFrameHeader& header) { header.sequence = static_cast<std::uint32_t>(chunks); });
     },
     ErrorCode::kProtocol, "of the contributions, of which it owed"},
    {"a sum that is not the next", [](Connection&, const Liar& liar) { say(liar.connection, liar.member.sum(1)); },
     ErrorCode::kProtocol, "frame 1 of the sums"},
    {"a sum replayed",
     [](Connection&, const Liar& liar) {
       say_frame(liar.connection, liar.sum());
       say(liar.connection, liar.sum());
     },
     ErrorCode::kProtocol, "frame 0 of the sums"},
    {"a contribution that passes for a sum",
     [](Connection&, const Liar& liar) {
       say_changed(liar, liar.contribution(), [](RingFrameHeader& header) { header.phase = RingPhase::kAllGather; });
     },
     ErrorCode::kProtocol, "frame 0 of the sums"},
    {"a sum that passes for a contribution",
     [](Connection&, const Liar& liar) {
       say_changed(liar, liar.sum(), [](RingFrameHeader& header) { header.phase = RingPhase::kReduceScatter; });
     },
     ErrorCode::kProtocol, "frame 0 of the contributions"},
    {"a frame longer than its place",
     [](Connection&, const Liar& liar) {
       say_changed(liar, liar.contribution(), [](RingFrameHeader& header) { header.length += 1; });
     },
     ErrorCode::kProtocol, "frame 0 of the contributions"},
    {"a frame shorter than its place",
     [](Connection&, const Liar& liar) {
       say_changed(liar, liar.sum(), [](RingFrameHeader& header) { header.length = 0; });
     },
     ErrorCode::kProtocol, "has 0 bytes"},
    {"a frame of gigabytes",
     [](Connection&, const Liar& liar) {
       say_changed(liar, liar.sum(), [](RingFrameHeader& header) { header.length = 0xffff'ff00; });
     },
     ErrorCode::kProtocol, "bytes long"},
    {"a frame for another place",
     [](Connection&, const Liar& liar) {
       say_changed(liar, liar.sum(), [](RingFrameHeader& header) { header.offset = std::uint64_t{1} << 60; });
     },
     ErrorCode::kProtocol, "frame 0 of the sums"},
    {"a keepalive with a payload",
     [](Connection&, const Liar& liar) {
       say_changed(liar, liar.sum(), [](RingFrameHeader& header) { header.type = RingFrameType::kKeepalive; });
     },
     ErrorCode::kProtocol, "a keepalive with a payload"},
    {"another hello instead of frames",
     [](Connection&, const Liar& liar) {
       RingHello hello;
       hello.from = liar.connection.peer();
       say(liar.connection, encode(hello));
     },
     ErrorCode::kProtocol, "another hello before all of this attempt had come"},
};

}  // namespace

class DirectExchangeLiarsTest : public QObject {
  Q_OBJECT

  OpenThings before_;

 private Q_SLOTS:
  // What OpenSSL and the sanitizers open once is open before anything is counted.
  void initTestCase() {
    LoopbackRing ring(2);
    verify_all_succeeded(ring.run(direct_spec(ring), some_inputs(2, 1'000)));
  }
  void init() { before_ = OpenThings::now(); }
  void cleanup() { verify_nothing_stays_open(before_); }

  void a_member_that_breaks_the_protocol_is_named_data();
  void a_member_that_breaks_the_protocol_is_named();
  void a_hello_that_lies_is_refused_data();
  void a_hello_that_lies_is_refused();
  void members_that_were_told_different_schedules_refuse_each_other_data();
  void members_that_were_told_different_schedules_refuse_each_other();
  void after_a_liar_the_others_succeed_without_it();
};

void DirectExchangeLiarsTest::a_member_that_breaks_the_protocol_is_named_data() {
  QTest::addColumn<int>("index");
  QTest::addColumn<int>("liar");
  for (int i = 0; i < static_cast<int>(std::size(kCases)); ++i) {
    for (const int liar : {0, 1}) QTest::addRow("%s, by rank %d", kCases[i].name, liar) << i << liar;
  }
}

void DirectExchangeLiarsTest::a_member_that_breaks_the_protocol_is_named() {
  QFETCH(int, index);
  QFETCH(int, liar);
  const Case& lie = kCases[index];
  LoopbackRing ring(2);
  const AllReduceSpec spec = direct_spec(ring);
  const Inputs inputs = some_inputs(2, kNumel);
  const auto honest = static_cast<std::size_t>(1 - liar);
  const auto begin = Clock::now();

  std::optional<TlsConnection> connection;
  std::jthread lying([&] {
    PlayedPeer member(ring, static_cast<std::size_t>(liar), spec);
    connection.emplace(member.meet(honest));
    lie.lie(connection, {member, honest, *connection});
  });
  const MemberResult result = ring.run_member(static_cast<int>(honest), spec, inputs[honest], ring.abort);
  lying.join();

  QVERIFY(Clock::now() - begin < test::kForEver);
  QVERIFY(!result.ok());
  QVERIFY2(message_of(result).find(lie.words) != std::string::npos, message_of(result).c_str());
  QCOMPARE(result.failure().error.code, lie.code);
  QCOMPARE(result.failure().peer->value, ring.id(liar).value);
  const auto& whole = result.failure().whole_buckets;
  QVERIFY(std::ranges::count(whole, true) == 0);
}

void DirectExchangeLiarsTest::a_hello_that_lies_is_refused_data() {
  QTest::addColumn<int>("field");
  QTest::addColumn<int>("liar");
  QTest::addColumn<QString>("words");
  const std::pair<int, const char*> fields[] = {{0, "a payload of 3000001 values instead of 3000000"},
                                                {1, "buckets of 256 values"},
                                                {2, "another wire format"},
                                                {3, "which buckets are final"},
                                                {4, "rank"},
                                                {5, "2 connections"},
                                                {6, "schedule"}};
  for (const auto& [field, words] : fields) {
    for (const int liar : {0, 1}) QTest::addRow("%s, by rank %d", words, liar) << field << liar << words;
  }
}

void DirectExchangeLiarsTest::a_hello_that_lies_is_refused() {
  QFETCH(int, field);
  QFETCH(int, liar);
  QFETCH(QString, words);
  LoopbackRing ring(2);
  const AllReduceSpec spec = direct_spec(ring);
  const Inputs inputs = some_inputs(2, kNumel);
  const auto honest = static_cast<std::size_t>(1 - liar);
  RingHello hello = hello_of(spec, static_cast<std::size_t>(liar), RingRole::kExchange, payload_of(spec, kNumel));
  if (field == 0) hello.payload_numel += 1;
  if (field == 1) hello.bucket_numel = kBlockNumel;
  if (field == 2) hello.wire = WireFormat::kBf16;
  if (field == 3) hello.final_buckets = 7;
  if (field == 4) hello.world_size = 3;
  if (field == 5) hello.connection_count = 2;
  if (field == 6) hello.role = RingRole::kSends;

  std::vector<TlsConnection> connections;
  std::jthread lying([&] {
    PlayedPeer member(ring, static_cast<std::size_t>(liar), spec);
    connections.push_back(member.meet(honest, hello));
    if (field != 5 || liar != 0) return;
    hello.connection_index = 1;
    connections.push_back(member.meet(honest, hello));
  });
  const MemberResult result = ring.run_member(static_cast<int>(honest), spec, inputs[honest], ring.abort);
  lying.join();

  QVERIFY(!result.ok());
  QCOMPARE(result.failure().error.code, ErrorCode::kProtocol);
  QVERIFY2(message_of(result).find(words.toStdString()) != std::string::npos, message_of(result).c_str());
  QCOMPARE(result.failure().peer->value, ring.id(liar).value);
}

void DirectExchangeLiarsTest::members_that_were_told_different_schedules_refuse_each_other_data() {
  QTest::addColumn<int>("world_size");
  QTest::addColumn<int>("different");
  for (const int world_size : {2, 4}) {
    for (int rank = 0; rank < world_size; ++rank)
      QTest::addRow("rank %d of %d", rank, world_size) << world_size << rank;
  }
}

void DirectExchangeLiarsTest::members_that_were_told_different_schedules_refuse_each_other() {
  QFETCH(int, world_size);
  QFETCH(int, different);
  LoopbackRing ring(world_size);
  AllReduceSpec spec = direct_spec(ring);
  spec.silence_timeout = 1'500ms * kSlowdown;
  const Inputs inputs = some_inputs(world_size, 100'000);
  std::vector<MemberResult> results(static_cast<std::size_t>(world_size));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([&, rank] {
      AllReduceSpec own = spec;
      if (rank == different) own.schedule = Schedule::kRing;
      const auto at = static_cast<std::size_t>(rank);
      results[at] = ring.run_member(rank, own, inputs[at], ring.abort);
    });
  }
  threads.clear();

  bool told = false;
  for (const MemberResult& result : results) {
    QVERIFY(!result.ok());
    told = told || (result.failure().error.code == ErrorCode::kProtocol &&
                    message_of(result).find("schedule") != std::string::npos);
  }
  QVERIFY2(told, message_of(results[0]).c_str());
}

void DirectExchangeLiarsTest::after_a_liar_the_others_succeed_without_it() {
  LoopbackRing ring(3);
  AllReduceSpec spec = direct_spec(ring);
  const Inputs inputs = some_inputs(3, kNumel);
  std::vector<TlsConnection> connections;  // open until it is named
  std::jthread liar([&] {
    connections = PlayedPeer(ring, 1, spec).meet_all();
    say(connections[1], Bytes(500, std::byte{0x41}));
  });
  verify_ended(ring.run(spec, inputs, {0, 2}), ring.id(1), ErrorCode::kProtocol);
  liar.join();
  connections.clear();
  if (QTest::currentTestFailed()) return;

  spec.attempt.value += 1;
  spec.order.erase(spec.order.begin() + 1);
  const auto results = ring.run(spec, inputs, {0, 2});

  verify_all_succeeded(results);
}

QTEST_GUILESS_MAIN(DirectExchangeLiarsTest)
#include "direct_exchange_liars_test.moc"
