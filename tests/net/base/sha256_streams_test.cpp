#include "net/base/sha256_streams.h"

#include <QtTest/QTest>
#include <algorithm>
#include <random>

namespace {

using namespace atl;

Bytes noise(std::size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  Bytes result(bytes);
  for (std::byte& byte : result) byte = static_cast<std::byte>(random());
  return result;
}

}  // namespace

class Sha256StreamsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void each_message_has_the_digest_that_openssl_gives_it_alone_data() {
    QTest::addColumn<int>("streams");
    QTest::addColumn<int>("blocks");
    for (const int streams : {1, 2, 3}) {
      for (const int blocks : {0, 1, 2, 3, 64, 1000}) QTest::addRow("%d x %d", streams, blocks) << streams << blocks;
    }
  }
  void each_message_has_the_digest_that_openssl_gives_it_alone() {
    QFETCH(const int, streams);
    QFETCH(const int, blocks);
    const auto bytes = static_cast<std::size_t>(blocks) * kSha256BlockBytes;
    std::vector<Bytes> messages;
    for (int i = 0; i < streams; ++i) messages.push_back(noise(bytes, static_cast<unsigned>(1 + i)));
    // In parts of unequal lengths, as pieces and whole momenta are.
    Sha256Streams hash(messages.size());
    for (std::size_t begin = 0, part = kSha256BlockBytes; begin < bytes; begin += part, part *= 2) {
      std::vector<ByteView> parts;
      for (const Bytes& message : messages) {
        parts.push_back(ByteView(message).subspan(begin, std::min(part, bytes - begin)));
      }
      hash.update(parts);
    }
    const std::vector<Digest> digests = hash.finish();
    QCOMPARE(digests.size(), messages.size());
    for (std::size_t i = 0; i < messages.size(); ++i) QCOMPARE(to_hex(digests[i]), sha256_hex(messages[i]));
  }

  void one_message_may_have_any_length() {
    const Bytes message = noise(1001, 7);
    Sha256Streams hash(1);
    hash.update(std::vector{ByteView(message).first(77)});
    hash.update(std::vector{ByteView(message).subspan(77)});
    QCOMPARE(to_hex(hash.finish().at(0)), sha256_hex(message));
  }

  void a_length_beyond_32_bits_of_bits_is_counted() {
    const Bytes part(64u << 20);  // 9 of them are more than 2^32 bits
    Sha256 whole;
    Sha256Streams hash(2);
    for (int i = 0; i < 9; ++i) {
      whole.update(part);
      hash.update(std::vector{ByteView(part), ByteView(part)});
    }
    const std::string expected = to_hex(whole.finish());
    for (const Digest& digest : hash.finish()) QCOMPARE(to_hex(digest), expected);
  }
};

QTEST_APPLESS_MAIN(Sha256StreamsTest)
#include "sha256_streams_test.moc"
