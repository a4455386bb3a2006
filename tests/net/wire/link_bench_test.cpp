#include "net/wire/link_bench.h"

#include <QtTest>
#include <random>

#include "net/base/encoding.h"

namespace atl {
namespace {

const LinkRequest kRequest{LinkMode::kClientSends, 5000};
const LinkSenderReport kSender{80'123, 79'000, 12, 34'567, "bbr"};
const LinkReceiverReport kReceiver{1'000'000'000, 2'000'000'000, 700'000'000, 1'300'000'000};

// Bytes changed, missing or added.
template <class Message, class Decode>
void verify_changes(const Message& message, Decode decode) {
  std::mt19937 random(3);
  const Bytes good = encode(message);
  int decoded = 0;
  for (int i = 0; i < 5000; ++i) {
    Bytes bytes = good;
    bytes.resize(bytes.size() - 1 + random() % 3);
    for (auto changes = random() % 3; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    }
    const auto said = decode(bytes);
    if (!said.ok()) continue;
    ++decoded;
    QCOMPARE(bytes.size(), good.size());
    QVERIFY(decode(encode(*said)).value() == *said);
  }
  QVERIFY(decoded > 0 && decoded < 4000);  // a third has the right length
}

}  // namespace

class LinkBenchWireTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void every_message_survives_a_round_trip();
  void the_bytes_are_those_of_version_1();
  void garbage_is_refused();
  void changed_messages_are_refused_or_decoded_to_what_they_say();
};

void LinkBenchWireTest::every_message_survives_a_round_trip() {
  QCOMPARE(encode(kRequest).size(), kLinkRequestBytes);
  QCOMPARE(encode(kSender).size(), kLinkSenderReportBytes);
  QCOMPARE(encode(kReceiver).size(), kLinkReceiverReportBytes);
  QVERIFY(decode_link_request(encode(kRequest)).value() == kRequest);
  QVERIFY(decode_link_sender_report(encode(kSender)).value() == kSender);
  QVERIFY(decode_link_receiver_report(encode(kReceiver)).value() == kReceiver);
}

void LinkBenchWireTest::the_bytes_are_those_of_version_1() {
  QCOMPARE(hex_encode(encode(kRequest)), std::string("41544c4201000300") + "88130000");
  QCOMPARE(hex_encode(encode(kSender)),
           std::string("fb380100983401000c00000007870000") + "62627200000000000000000000000000");
}

void LinkBenchWireTest::garbage_is_refused() {
  Bytes request = encode(kRequest);
  request[4] = std::byte{2};
  QCOMPARE(decode_link_request(request).error().code, ErrorCode::kVersionUnsupported);
  QVERIFY(!decode_link_request(ByteView(request).first(11)).ok());
  QVERIFY(!decode_link_request(encode(LinkRequest{static_cast<LinkMode>(9), 1})).ok());
  QVERIFY(!decode_link_request(encode(LinkRequest{LinkMode::kEcho, kMaxLinkMilliseconds + 1})).ok());
  QVERIFY(!decode_link_sender_report(encode(LinkSenderReport{1, 1, 1, 1, "\x1b[2J"})).ok());
  QVERIFY(!decode_link_receiver_report({}).ok());
}

void LinkBenchWireTest::changed_messages_are_refused_or_decoded_to_what_they_say() {
  verify_changes(kRequest, decode_link_request);
  verify_changes(kSender, decode_link_sender_report);
  verify_changes(kReceiver, decode_link_receiver_report);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::LinkBenchWireTest)
#include "link_bench_test.moc"
