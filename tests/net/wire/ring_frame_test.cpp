#include "net/wire/ring_frame.h"

#include <QtTest>
#include <random>

#include "net/base/encoding.h"

using namespace atl;

namespace {

RingHello some_hello() {
  return RingHello{.from = IslandId{"isl-0000000000000001"},
                   .role = RingRole::kReceives,
                   .round = OuterStep{3},
                   .attempt = Attempt{2},
                   .fragment = FragmentId{3},
                   .from_rank = Rank{1},
                   .world_size = 4,
                   .connection_index = 1,
                   .connection_count = 2,
                   .wire = WireFormat::kInt8Block,
                   .payload_numel = 1'000'000,
                   .bucket_numel = 0x1000000,
                   .final_buckets = 0x1122334455667788};
}

RingFrameHeader some_header() {
  return RingFrameHeader{.type = RingFrameType::kData,
                         .phase = RingPhase::kAllGather,
                         .round = OuterStep{3},
                         .attempt = Attempt{2},
                         .fragment = FragmentId{2},
                         .sequence = 17,
                         .length = 262'080,
                         .offset = 0x0102030405};
}

RingReceipt some_receipt() {
  return RingReceipt{.round = OuterStep{3},
                     .attempt = Attempt{2},
                     .fragment = FragmentId{1},
                     .microseconds = 0xf1f2f3f4,
                     .bytes = 0x0102030405060708};
}

Result<RingHello> decode_hello(ByteView bytes) {
  if (bytes.size() < kRingHelloPrefixBytes) return Error{ErrorCode::kProtocol, "short"};
  ATOLL_ASSIGN_OR_RETURN(const std::size_t length, decode_ring_hello_prefix(bytes.first(kRingHelloPrefixBytes)));
  const ByteView body = bytes.subspan(kRingHelloPrefixBytes);
  if (body.size() < length) return Error{ErrorCode::kProtocol, "short"};
  return decode_ring_hello_body(body.first(length));
}

using HeaderBytes = std::array<std::byte, kRingFrameHeaderBytes>;

HeaderBytes encoded(const RingFrameHeader& header) {
  HeaderBytes bytes;
  encode(header, bytes);
  return bytes;
}

}  // namespace

class RingFrameTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void hello_comes_back_as_it_went();
  void hello_bytes_are_frozen();
  void another_version_of_the_protocol_is_told_apart();
  void truncated_hello_is_refused_at_every_length();
  void implausible_hello_is_refused_data();
  void implausible_hello_is_refused();
  void frame_header_comes_back_as_it_went();
  void frame_header_bytes_are_frozen();
  void implausible_frame_header_is_refused_data();
  void implausible_frame_header_is_refused();
  void keepalive_has_no_payload();
  void garbage_never_passes_for_more_than_it_says();
  void what_begins_a_connection_ahead_is_frozen_and_comes_back();
  void an_implausible_beginning_ahead_is_refused();
  void padding_says_how_long_it_is_and_is_never_long();
  void receipt_is_frozen_and_comes_back();
  void a_receipt_of_another_length_is_refused();
  void implausible_receipt_is_refused_data();
  void implausible_receipt_is_refused();
};

void RingFrameTest::hello_comes_back_as_it_went() {
  const auto decoded = decode_hello(encode(some_hello()));

  QVERIFY(decoded.ok());
  QVERIFY(*decoded == some_hello());
  for (const RingRole role : {RingRole::kContributions, RingRole::kExchange}) {
    RingHello other = some_hello();
    other.role = role;
    QVERIFY(*decode_hello(encode(other)) == other);
  }
}

void RingFrameTest::hello_bytes_are_frozen() {
  QCOMPARE(hex_encode(encode(some_hello())),
           std::string("4154524805004100"                              // magic, version 5, 65 bytes
                       "0101040001000100020003000000020000004042"      // wire, role ... payload numel
                       "0f0000000000"                                  // (its upper bytes)
                       "00000001000000008877665544332211"              // bucket numel, final buckets
                       "140069736c2d30303030303030303030303030303031"  // "isl-0000000000000001"
                       "03"                                            // fragment
                       ));
}

void RingFrameTest::another_version_of_the_protocol_is_told_apart() {
  Bytes bytes = encode(some_hello());
  for (const int version : {1, 4, 6}) {
    bytes[4] = static_cast<std::byte>(version);

    QCOMPARE(decode_hello(bytes).error().code, ErrorCode::kVersionUnsupported);
  }
}

void RingFrameTest::truncated_hello_is_refused_at_every_length() {
  const Bytes bytes = encode(some_hello());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    QVERIFY(!decode_hello(ByteView(bytes).first(size)).ok());
    if (size >= kRingHelloPrefixBytes) {
      QVERIFY(!decode_ring_hello_body(ByteView(bytes).first(size).subspan(kRingHelloPrefixBytes)).ok());
    }
  }
}

void RingFrameTest::implausible_hello_is_refused_data() {
  QTest::addColumn<int>("fault");
  QTest::newRow("a ring of one") << 0;
  QTest::newRow("too many islands") << 1;
  QTest::newRow("a rank outside the ring") << 2;
  QTest::newRow("no connections") << 3;
  QTest::newRow("too many connections") << 4;
  QTest::newRow("an index outside the connections") << 5;
  QTest::newRow("an unknown wire format") << 6;
  QTest::newRow("too many values") << 7;
  QTest::newRow("no id") << 8;
  QTest::newRow("a long id") << 9;
  QTest::newRow("empty buckets") << 10;
  QTest::newRow("an unknown role") << 11;
  QTest::newRow("an unknown fragment") << 12;
}

void RingFrameTest::implausible_hello_is_refused() {
  QFETCH(int, fault);
  RingHello hello = some_hello();
  if (fault == 0) hello.world_size = 1;
  if (fault == 1) hello.world_size = kMaxRingIslands + 1;
  if (fault == 2) hello.from_rank = Rank{4};
  if (fault == 3) hello.connection_count = 0;
  if (fault == 4) hello.connection_count = kMaxConnectionsPerEdge + 1;
  if (fault == 5) hello.connection_index = 2;
  if (fault == 6) hello.wire = static_cast<WireFormat>(200);
  if (fault == 7) hello.payload_numel = kMaxPayloadNumel + 1;
  if (fault == 8) hello.from.value.clear();
  if (fault == 10) hello.bucket_numel = 0;
  if (fault == 11) hello.role = static_cast<RingRole>(4);
  if (fault == 12) hello.fragment = FragmentId{kMaxFragments};
  if (fault == 9) hello.from.value.assign(kMaxIslandIdBytes + 1, 'x');

  QCOMPARE(decode_hello(encode(hello)).error().code, ErrorCode::kProtocol);
}

void RingFrameTest::frame_header_comes_back_as_it_went() {
  const auto decoded = decode_ring_frame_header(encoded(some_header()));

  QVERIFY(decoded.ok());
  QVERIFY(*decoded == some_header());
}

void RingFrameTest::frame_header_bytes_are_frozen() {
  QCOMPARE(hex_encode(encoded(some_header())), std::string("415452460101020003000000020000001100000"
                                                           "0c0ff03000504030201000000"));
}

void RingFrameTest::implausible_frame_header_is_refused_data() {
  QTest::addColumn<int>("byte");
  QTest::addColumn<int>("value");
  QTest::newRow("magic") << 0 << 0;
  QTest::newRow("type 0") << 4 << 0;
  QTest::newRow("type 3") << 4 << 3;
  QTest::newRow("phase") << 5 << 2;
  QTest::newRow("fragment") << 6 << 4;
  QTest::newRow("reserved") << 7 << 1;
  QTest::newRow("length") << 23 << 0x7f;
}

void RingFrameTest::implausible_frame_header_is_refused() {
  QFETCH(int, byte);
  QFETCH(int, value);
  HeaderBytes bytes = encoded(some_header());
  bytes[static_cast<std::size_t>(byte)] = static_cast<std::byte>(value);

  QCOMPARE(decode_ring_frame_header(bytes).error().code, ErrorCode::kProtocol);
}

void RingFrameTest::keepalive_has_no_payload() {
  const RingFrameHeader keepalive{
      .type = RingFrameType::kKeepalive, .round = OuterStep{1}, .attempt = Attempt{1}, .offset = 18'000};
  RingFrameHeader loaded = keepalive;
  loaded.length = 1;

  QVERIFY(*decode_ring_frame_header(encoded(keepalive)) == keepalive);
  QVERIFY(!decode_ring_frame_header(encoded(loaded)).ok());
}

void RingFrameTest::garbage_never_passes_for_more_than_it_says() {
  std::mt19937 random(2024);
  const Bytes valid_hello = encode(some_hello());
  const HeaderBytes valid_header = encoded(some_header());
  const RingReceiptMessage valid_receipt = encode(some_receipt());
  for (int trial = 0; trial < 50'000; ++trial) {
    // A few bytes of a valid message changed: what decodes encodes to the same bytes again.
    Bytes hello = valid_hello;
    HeaderBytes header = valid_header;
    RingReceiptMessage receipt = valid_receipt;
    for (int change = 0; change < 3; ++change) {
      hello[random() % hello.size()] = static_cast<std::byte>(random());
      header[random() % header.size()] = static_cast<std::byte>(random());
      receipt[random() % receipt.size()] = static_cast<std::byte>(random());
    }
    if (const auto decoded = decode_hello(hello); decoded.ok()) QVERIFY(encode(*decoded) == hello);
    if (const auto decoded = decode_ring_frame_header(header); decoded.ok()) QVERIFY(encoded(*decoded) == header);
    if (const auto decoded = decode_ring_receipt(receipt); decoded.ok()) QVERIFY(encode(*decoded) == receipt);
  }
}

void RingFrameTest::what_begins_a_connection_ahead_is_frozen_and_comes_back() {
  const RingAhead ahead{FragmentId{3}, Schedule::kDirect, true};

  QCOMPARE(hex_encode(encode(ahead)), std::string("4154524105000303"));
  QVERIFY(*decode_ring_ahead(encode(ahead)) == ahead);
  QVERIFY(*decode_ring_ahead(encode(RingAhead{})) == RingAhead{});
  QCOMPARE(ring_message_at(ByteView(encode(ahead)).first(4)), RingMessage::kAhead);
}

void RingFrameTest::an_implausible_beginning_ahead_is_refused() {
  const auto with = [](std::size_t at, int value) {
    RingAheadBytes bytes = encode(RingAhead{});
    bytes[at] = static_cast<std::byte>(value);
    return decode_ring_ahead(bytes);
  };

  QCOMPARE(with(0, 0).error().code, ErrorCode::kProtocol);
  QCOMPARE(with(4, 4).error().code, ErrorCode::kVersionUnsupported);
  QCOMPARE(with(6, kMaxFragments).error().code, ErrorCode::kProtocol);
  QCOMPARE(with(7, 4).error().code, ErrorCode::kProtocol);
  QVERIFY(!decode_ring_ahead(ByteView(encode(RingAhead{})).first(7)).ok());
}

void RingFrameTest::padding_says_how_long_it_is_and_is_never_long() {
  const Bytes padding = ring_padding(5);

  QCOMPARE(hex_encode(padding), std::string("41545250050000000000000000"));
  QCOMPARE(*decode_ring_padding_prefix(ByteView(padding).first(kRingHelloPrefixBytes)), std::uint32_t{5});
  QVERIFY(!decode_ring_padding_prefix(ByteView(ring_padding(kMaxRingPaddingBytes + 1)).first(8)).ok());
}

void RingFrameTest::receipt_is_frozen_and_comes_back() {
  const RingReceiptMessage message = encode(some_receipt());

  QCOMPARE(hex_encode(message), std::string("41545243"          // magic
                                            "01000000"          // fragment, zero
                                            "0300000002000000"  // round, attempt
                                            "f4f3f2f1"          // microseconds
                                            "0807060504030201"  // bytes
                                            ));
  QVERIFY(*decode_ring_receipt(message) == some_receipt());
  QCOMPARE(ring_message_at(ByteView(message).first(4)), RingMessage::kReceipt);
}

void RingFrameTest::a_receipt_of_another_length_is_refused() {
  const RingReceiptMessage message = encode(some_receipt());
  Bytes longer(message.begin(), message.end());
  longer.push_back(std::byte{0});

  for (std::size_t size = 0; size < message.size(); ++size) {
    QCOMPARE(decode_ring_receipt(ByteView(message).first(size)).error().code, ErrorCode::kProtocol);
  }
  QCOMPARE(decode_ring_receipt(longer).error().code, ErrorCode::kProtocol);
}

void RingFrameTest::implausible_receipt_is_refused_data() {
  QTest::addColumn<int>("byte");
  QTest::addColumn<int>("value");
  QTest::newRow("magic") << 3 << 0x46;
  QTest::newRow("fragment") << 4 << int{kMaxFragments};
  QTest::newRow("reserved") << 5 << 1;
  QTest::newRow("reserved, the next") << 6 << 1;
  QTest::newRow("reserved, the last") << 7 << 1;
}

void RingFrameTest::implausible_receipt_is_refused() {
  QFETCH(int, byte);
  QFETCH(int, value);
  RingReceiptMessage message = encode(some_receipt());
  message[static_cast<std::size_t>(byte)] = static_cast<std::byte>(value);

  QCOMPARE(decode_ring_receipt(message).error().code, ErrorCode::kProtocol);
}

QTEST_APPLESS_MAIN(RingFrameTest)
#include "ring_frame_test.moc"
