#include "kernels/int4_e3m0.h"

#include <QtTest>
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernels/float_bits.h"
#include "kernels/wire_codec.h"
#include "tests/kernels/codec_values.h"

using namespace atl;

namespace {

std::vector<std::byte> encoded(const std::vector<float>& x) {
  std::vector<std::byte> bytes(encoded_size(WireFormat::kInt4E3m0, x.size()));
  encode_values(WireFormat::kInt4E3m0, x, bytes);
  return bytes;
}

std::vector<float> there_and_back(const std::vector<float>& x) {
  std::vector<float> back(x.size());
  decode_values(WireFormat::kInt4E3m0, encoded(x), back);
  return back;
}

}  // namespace

class Int4E3m0Test : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void encoded_bytes_are_frozen();
  void each_value_becomes_the_nearest_level();
  void ties_go_to_the_larger_magnitude();
  void largest_magnitude_survives_exactly();
  void an_odd_last_value_has_a_byte_of_its_own();
  void error_stays_below_a_third_or_half_the_least_level();
  void blocks_too_small_for_normal_levels_become_zero();
  void non_finite_values_poison_their_block_only();
  void largest_floats_are_encoded_without_overflow();
};

void Int4E3m0Test::encoded_bytes_are_frozen() {
  const std::vector<float> x{8.0f, -8.0f, 4.0f, 0.125f, -0.0f, 3.0f, -0.0626f, 0.01f, -1.0f};

  const auto bytes = encoded(x);

  // Scale 8; codes 7, 15, 6, 1, 0, 6 (3 / 8 is a tie), 9, 0, 12.
  const QByteArray raw(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
  QCOMPARE(raw.toHex(), QByteArray("00000041f71660090c"));
}

void Int4E3m0Test::each_value_becomes_the_nearest_level() {
  std::vector<float> levels{0.0f};
  for (int k = 0; k <= 6; ++k) levels.push_back(std::ldexp(1.0f, -k));
  auto x = normal_values(kBlockNumel, 2);
  for (float& value : x) value = std::clamp(value / 3, -1.0f, 1.0f);
  x[0] = 1.0f;  // the scale

  const auto back = there_and_back(x);

  for (std::size_t i = 0; i < x.size(); ++i) {
    const float got = std::abs(std::abs(x[i]) - std::abs(back[i]));
    for (const float level : levels) QVERIFY(got <= std::abs(std::abs(x[i]) - level));
    QVERIFY(back[i] == 0.0f || std::signbit(back[i]) == std::signbit(x[i]));
  }
}

void Int4E3m0Test::ties_go_to_the_larger_magnitude() {
  const auto back = there_and_back({1.0f, 0.75f, -0.375f, 0.75f * 0x1p-5f, 0x1p-7f, -0x1p-7f, 0x0.ffffffp-7f});

  QCOMPARE(back, (std::vector<float>{1.0f, 1.0f, -0.5f, 0x1p-5f, 0x1p-6f, -0x1p-6f, 0.0f}));
}

void Int4E3m0Test::largest_magnitude_survives_exactly() {
  std::mt19937 random(3);
  for (int trial = 0; trial < 20'000; ++trial) {
    const auto bits = std::uniform_int_distribution<std::uint32_t>(0x04000000u, 0x7f7fffffu)(random);
    const float largest = std::bit_cast<float>(bits);
    QCOMPARE(there_and_back({-largest, largest}), (std::vector<float>{-largest, largest}));
  }
}

void Int4E3m0Test::an_odd_last_value_has_a_byte_of_its_own() {
  for (const std::size_t numel : {1u, 3u, 255u, 257u}) {
    const std::vector<float> x(numel, -2.0f);
    QCOMPARE(encoded(x).size(), (numel + 255) / 256 * 4 + (numel + 1) / 2);
    QCOMPARE(there_and_back(x), x);
  }
}

void Int4E3m0Test::error_stays_below_a_third_or_half_the_least_level() {
  const auto x = heavy_tails(10'000, 5);
  const auto back = there_and_back(x);

  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto block = std::span(x).subspan(i / 256 * 256, std::min<std::size_t>(256, x.size() - i / 256 * 256));
    float scale = 0;
    for (const float value : block) scale = std::max(scale, std::abs(value));
    // The ratio's two roundings may move a value across a threshold: 2^-22 of its magnitude.
    QVERIFY(std::abs(back[i] - x[i]) <= std::max(std::abs(x[i]) / 3, scale / 128) + std::abs(x[i]) * 0x1p-22f);
  }
}

void Int4E3m0Test::blocks_too_small_for_normal_levels_become_zero() {
  QCOMPARE(there_and_back({kMinInt4Scale}), std::vector<float>{kMinInt4Scale});
  for (const float tiny : {std::nextafter(kMinInt4Scale, 0.0f), 1e-40f}) {
    QVERIFY(std::ranges::all_of(encoded({tiny, -tiny}), [](std::byte b) { return b == std::byte{0}; }));
  }
}

void Int4E3m0Test::non_finite_values_poison_their_block_only() {
  for (const char* kind : {"nan", "infinity"}) {
    std::vector<float> x(2 * kBlockNumel, 1.0f);
    x[7] = values_of_kind(kind, 1)[0];

    const auto back = there_and_back(x);

    for (std::size_t i = 0; i < kBlockNumel; ++i) QCOMPARE(std::bit_cast<std::uint32_t>(back[i]), kQuietNaNBits);
    for (std::size_t i = kBlockNumel; i < x.size(); ++i) QCOMPARE(back[i], 1.0f);
  }
}

void Int4E3m0Test::largest_floats_are_encoded_without_overflow() {
  const float largest = std::numeric_limits<float>::max();
  QCOMPARE(there_and_back({largest, -largest, largest / 4}), (std::vector<float>{largest, -largest, largest / 4}));
}

QTEST_APPLESS_MAIN(Int4E3m0Test)
#include "int4_e3m0_test.moc"
