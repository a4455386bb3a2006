// The passes that end a round, against the same done value by value on one thread: to the last bit.
#include "net/recovery/outer_step.h"

#include <QtTest/QTest>
#include <algorithm>
#include <limits>
#include <random>

#include "kernels/reduce.h"
#include "kernels/wire_codec.h"
#include "net/recovery/outer_state.h"

using namespace atl;

namespace {

constexpr auto kChunk = static_cast<std::int64_t>(kStateChunkNumel);
constexpr std::int64_t kNumel = 5 * kChunk + 70'001;  // a short chunk at the end
// Over the ends of rows, of blocks, of pieces and of chunks; in all of them, so that several are hashed in step.
const std::vector<ParameterRange> kScattered{{3, 1},
                                             {10, 4096},
                                             {5000, 1'000'000},
                                             {kChunk - 77, 300'000},
                                             {3 * kChunk - 50, 100},
                                             {4 * kChunk + 5, 4096},
                                             {kNumel - 60'000, 60'000}};

std::vector<float> normal_values(std::int64_t count, unsigned seed) {
  std::minstd_rand random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

std::int64_t numel_of(const std::vector<ParameterRange>& ranges) {
  std::int64_t numel = 0;
  for (const ParameterRange& range : ranges) numel += range.numel;
  return numel;
}

// part(place, flat) of each value.
template <class Part>
void for_each_value(const std::vector<ParameterRange>& ranges, Part part) {
  std::size_t flat = 0;
  for (const ParameterRange& range : ranges) {
    for (std::int64_t i = 0; i < range.numel; ++i) part(static_cast<std::size_t>(range.offset + i), flat++);
  }
}

}  // namespace

class OuterStepTest : public QObject {
  Q_OBJECT

  const std::vector<float> theta_ = normal_values(kNumel, 1), velocity_ = normal_values(kNumel, 2);

 private Q_SLOTS:
  void a_pseudo_gradient_is_the_difference_and_its_norm_is_added_in_the_stated_order() {
    const std::vector<float> local = normal_values(numel_of(kScattered), 3);
    std::vector<float> expected(local.size());
    for_each_value(kScattered,
                   [&](std::size_t place, std::size_t flat) { expected[flat] = theta_[place] - local[flat]; });

    std::vector<float> made = local;
    const auto squared = pseudo_gradient(theta_, kScattered, made);

    QVERIFY(made == expected);
    QCOMPARE(squared, std::optional(squared_norm(expected)));
  }

  void a_pseudo_gradient_with_a_bad_value_anywhere_has_no_norm() {
    const auto numel = static_cast<std::size_t>(numel_of(kScattered));
    for (const std::size_t at : {std::size_t{0}, std::size_t{4097}, numel - 1}) {
      for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
        std::vector<float> local(numel, 1.0f);
        local[at] = bad;
        QVERIFY(!pseudo_gradient(theta_, kScattered, local));
      }
    }
  }

  void an_outer_step_is_that_of_each_value_and_hashes_what_it_touched_data() {
    QTest::addColumn<WireFormat>("wire");
    for (const WireFormat wire : kWireFormats) QTest::newRow(std::string(wire_format_name(wire)).c_str()) << wire;
  }
  void an_outer_step_is_that_of_each_value_and_hashes_what_it_touched() {
    QFETCH(const WireFormat, wire);
    const std::int64_t numel = numel_of(kScattered);
    Bytes canonical(static_cast<std::size_t>(encoded_bytes(wire, numel)));
    encode_values(wire, normal_values(numel, 4), canonical);
    std::vector<float> d(static_cast<std::size_t>(numel));
    decode_values(wire, canonical, d);
    std::vector<float> expected_theta = theta_, expected_velocity = velocity_;
    for_each_value(kScattered, [&](std::size_t place, std::size_t flat) {
      const float v = 0.9f * expected_velocity[place] + d[flat];
      expected_velocity[place] = v;
      expected_theta[place] = expected_theta[place] - 0.7f * (d[flat] + 0.9f * v);
    });

    std::vector<float> theta = theta_, velocity = velocity_;
    auto chunks = make_state_manifest(OuterStep{1}, theta, velocity).chunk_sha256;
    outer_step(theta, velocity, kScattered, wire, canonical, {0.7f, 0.9f}, chunks);

    QVERIFY(theta == expected_theta && velocity == expected_velocity);
    QVERIFY(chunks == make_state_manifest(OuterStep{1}, theta, velocity).chunk_sha256);
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      QCOMPARE(to_hex(chunks[i]), to_hex(chunk_digest(of_chunk(std::span<const float>(theta), i),
                                                      of_chunk(std::span<const float>(velocity), i))));
    }
    QCOMPARE(average_squared_norm(wire, canonical, numel), std::optional(squared_norm(d)));
  }

  void an_average_that_is_not_finite_has_no_norm() {
    Bytes canonical(4 * 5000);
    QVERIFY(average_squared_norm(WireFormat::kFp32, canonical, 5000));
    const float bad = std::numeric_limits<float>::infinity();
    std::ranges::copy(std::as_bytes(std::span(&bad, 1)), canonical.end() - 4);
    QVERIFY(!average_squared_norm(WireFormat::kFp32, canonical, 5000));
  }
};

QTEST_GUILESS_MAIN(OuterStepTest)
#include "outer_step_test.moc"
