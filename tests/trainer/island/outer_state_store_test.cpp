#include "trainer/island/outer_state_store.h"

#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>
#include <algorithm>
#include <fstream>
#include <random>

#include "kernels/wire_codec.h"
#include "net/base/encoding.h"
#include "net/base/file.h"

using namespace atl;

namespace {

std::vector<float> normal_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

Bytes raw_bytes(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

constexpr std::int64_t kNumel = 3000;
const std::vector<ParameterRange> kWhole{{0, kNumel}};

}  // namespace

class OuterStateStoreTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_outer_step_is_nesterov_sgd_and_makes_a_new_version() {
    OuterStateStore outer(kNumel);
    const auto theta = normal_values(kNumel, 1);
    const auto d = normal_values(kNumel, 2);
    outer.initialise(theta);
    const std::string before = outer.tree_hash();

    outer.apply(kWhole, WireFormat::kFp32, raw_bytes(d), 0.7f, 0.9f);

    QCOMPARE(outer.version().value, 1u);
    QVERIFY(outer.tree_hash() != before);
    for (std::size_t i = 0; i < theta.size(); ++i) {
      // First step: v = d, theta - 0.7 (d + 0.9 d). The tolerance is fp32 rounding of values of order 1.
      QVERIFY(std::abs(outer.parameters()[i] - (theta[i] - 0.7 * 1.9 * d[i])) < 1e-5);
    }
  }

  void chunks_put_together_are_the_state_and_an_old_version_is_gone() {
    OuterStateStore outer(kNumel);
    outer.initialise(normal_values(kNumel, 1));
    const auto manifest = outer.manifest();
    QVERIFY(manifest.ok());

    const auto chunk = outer.copy_chunk(OuterStep{0}, 0);

    QVERIFY(chunk.ok());
    QCOMPARE(chunk->size(), std::size_t{kNumel} * 8);
    QVERIFY(sha256(*chunk) == manifest->chunk_sha256[0]);
    outer.apply(kWhole, WireFormat::kFp32, raw_bytes(normal_values(kNumel, 2)), 0.7f, 0.9f);
    QCOMPARE(outer.copy_chunk(OuterStep{0}, 0).error().code, ErrorCode::kNotFound);
    QCOMPARE(outer.copy_chunk(OuterStep{1}, 1).error().code, ErrorCode::kInvalidArgument);
  }

  void what_is_served_is_the_state_of_the_moment_and_not_of_the_connections_begin() {
    std::shared_ptr<OuterStateStore> outer;
    const ServedOuterState served([&] { return outer; });
    QCOMPARE(served.manifest().error().code, ErrorCode::kNotFound);
    QCOMPARE(served.copy_chunk(OuterStep{0}, 0).error().code, ErrorCode::kNotFound);

    outer = std::make_shared<OuterStateStore>(kNumel);
    QCOMPARE(served.manifest().error().code, ErrorCode::kNotFound);  // no values yet
    outer->initialise(normal_values(kNumel, 1));

    QVERIFY(served.manifest().ok());
    QCOMPARE(served.copy_chunk(OuterStep{0}, 0)->size(), std::size_t{kNumel} * 8);
  }

  void fragments_make_the_step_of_the_whole_whatever_a_block_goes_over_data() {
    QTest::addColumn<WireFormat>("wire");
    for (const WireFormat wire :
         {WireFormat::kFp32, WireFormat::kBf16, WireFormat::kInt8Block, WireFormat::kInt4E3m0}) {
      QTest::newRow(std::string(wire_format_name(wire)).c_str()) << wire;
    }
  }
  // Each value is stepped with what the average of its fragment decodes to, wherever it lies.
  void fragments_make_the_step_of_the_whole_whatever_a_block_goes_over() {
    QFETCH(const WireFormat, wire);
    const std::vector<std::vector<ParameterRange>> parts = {{{0, 7}, {500, 1}, {501 + 128, 900}, {2999, 1}},
                                                            {{7, 493}, {501, 128}, {501 + 1028, 1470}}};
    OuterStateStore outer(kNumel);
    std::vector<float> theta = normal_values(kNumel, 1), velocity(kNumel);
    outer.initialise(theta);
    std::uint32_t step = 0;
    for (const auto& ranges : {parts[0], parts[1], parts[0]}) {
      std::size_t numel = 0;
      for (const ParameterRange& range : ranges) numel += static_cast<std::size_t>(range.numel);
      Bytes canonical(static_cast<std::size_t>(encoded_bytes(wire, static_cast<std::int64_t>(numel))));
      encode_values(wire, normal_values(numel, 10 + step), canonical);
      std::vector<float> decoded(numel);
      decode_values(wire, canonical, decoded);
      std::size_t at = 0;
      for (const ParameterRange& range : ranges) {
        for (auto i = static_cast<std::size_t>(range.offset); i < static_cast<std::size_t>(range.offset + range.numel);
             ++i, ++at) {
          velocity[i] = 0.9f * velocity[i] + decoded[at];
          theta[i] = theta[i] - 0.7f * (decoded[at] + 0.9f * velocity[i]);
        }
      }

      const HeldState now = outer.apply(ranges, wire, canonical, 0.7f, 0.9f);

      QCOMPARE(now.outer_step.value, ++step);
      QVERIFY(std::ranges::equal(outer.parameters(), theta));
      // Hashed again in part, it is the hash of all of it.
      QCOMPARE(now.state_hash, to_hex(make_state_manifest(OuterStep{step}, theta, velocity).tree_hash()));
      QCOMPARE(now.state_hash, outer.tree_hash());
      QCOMPARE(to_hex(outer.manifest()->tree_hash()), now.state_hash);
    }
  }

  // A state of several chunks, of which a fragment touches some.
  void what_a_fragment_does_not_touch_is_not_hashed_again_and_counts_all_the_same() {
    constexpr std::int64_t kLarge = 3 * static_cast<std::int64_t>(kStateChunkBytes) / 4 + 5;  // 6 chunks and a bit
    OuterStateStore outer(kLarge);
    outer.initialise(std::vector<float>(static_cast<std::size_t>(kLarge), 1.0f));
    const StateManifest before = *outer.manifest();
    const std::vector<ParameterRange> ranges{{kLarge - 10, 10}};

    outer.apply(ranges, WireFormat::kFp32, raw_bytes(std::vector<float>(10, 0.5f)), 1.0f, 0.5f);

    std::vector<float> theta(static_cast<std::size_t>(kLarge), 1.0f), velocity(theta.size());
    std::fill_n(theta.end() - 10, 10, 0.25f);
    std::fill_n(velocity.end() - 10, 10, 0.5f);
    QCOMPARE(outer.tree_hash(), to_hex(make_state_manifest(OuterStep{1}, theta, velocity).tree_hash()));
    const StateManifest after = *outer.manifest();
    QVERIFY(after.chunk_sha256[0] == before.chunk_sha256[0]);
    QVERIFY(after.chunk_sha256.back() != before.chunk_sha256.back());
  }

  // There is not memory for two.
  void what_is_let_go_of_makes_room_for_the_next_state() {
    OuterStateStore outer(kNumel);
    QVERIFY(outer.release().parameters.empty());
    outer.initialise(normal_values(kNumel, 1));
    const float* const parameters = outer.parameters().data();
    const std::string before = outer.tree_hash();
    Bytes bytes;
    const auto first = outer.copy_chunk(0, bytes);

    FetchedState room = outer.release();

    QVERIFY(!outer.holds_state());
    QCOMPARE(outer.held().error().code, ErrorCode::kNotFound);
    QCOMPARE(outer.manifest().error().code, ErrorCode::kNotFound);
    QCOMPARE(outer.copy_chunk(OuterStep{0}, 0).error().code, ErrorCode::kNotFound);
    QCOMPARE(outer.copy_chunk(0, bytes).error().code, ErrorCode::kNotFound);
    outer.replace(std::move(room));
    QCOMPARE(outer.parameters().data(), parameters);
    QCOMPARE(outer.tree_hash(), before);
    QVERIFY(outer.copy_chunk(0, bytes)->generation != first->generation);
  }

  // Which a snapshot writes down, while outer steps go on.
  void a_chunk_is_copied_as_it_is_now_with_the_state_that_it_is_of() {
    constexpr std::int64_t kLarge = static_cast<std::int64_t>(kStateChunkNumel) + 10;
    OuterStateStore outer(kLarge);
    Bytes bytes;
    QCOMPARE(outer.copy_chunk(0, bytes).error().code, ErrorCode::kNotFound);
    QCOMPARE(outer.held().error().code, ErrorCode::kNotFound);
    outer.initialise(std::vector<float>(static_cast<std::size_t>(kLarge), 1.0f));
    const auto first = outer.copy_chunk(0, bytes);
    QVERIFY(first.ok());
    QCOMPARE(first->state, *outer.held());
    QCOMPARE(first->sha256, sha256(bytes));

    outer.apply(std::vector<ParameterRange>{{0, 10}}, WireFormat::kFp32, raw_bytes(std::vector<float>(10, 0.5f)), 1.0f,
                0.5f);
    const auto second = outer.copy_chunk(0, bytes);
    outer.replace({OuterStep{1}, std::vector<float>(static_cast<std::size_t>(kLarge), 2.0f),
                   std::vector<float>(static_cast<std::size_t>(kLarge))});
    const auto third = outer.copy_chunk(0, bytes);

    QCOMPARE(second->state.outer_step, OuterStep{1});
    QVERIFY(second->sha256 != first->sha256);
    QCOMPARE(second->generation, first->generation);  // an outer step goes on in the same history
    QCOMPARE(third->state.outer_step, OuterStep{1});
    QVERIFY(third->generation != second->generation);
    QCOMPARE(third->sha256, sha256(bytes));
    QCOMPARE(outer.copy_chunk(1000, bytes).error().code, ErrorCode::kInvalidArgument);
  }
};

QTEST_GUILESS_MAIN(OuterStateStoreTest)
#include "outer_state_store_test.moc"
