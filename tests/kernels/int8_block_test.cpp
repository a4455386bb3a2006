#include "kernels/int8_block.h"

#include <QtTest>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/float_bits.h"
#include "kernels/wire_codec.h"
#include "tests/kernels/codec_values.h"

using namespace atl;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<std::byte> quantized(const std::vector<float>& x) {
  std::vector<std::byte> encoded(static_cast<std::size_t>(encoded_bytes(WireFormat::kInt8Block, std::ssize(x))));
  encode_values(WireFormat::kInt8Block, x, encoded);
  return encoded;
}

std::vector<float> dequantized(const std::vector<std::byte>& encoded, std::size_t numel) {
  std::vector<float> x(numel);
  decode_values(WireFormat::kInt8Block, encoded, x);
  return x;
}

float scale_of(const std::vector<std::byte>& encoded, std::size_t block = 0) {
  std::uint16_t upper = 0;
  std::memcpy(&upper, encoded.data() + block * (2 + kInt8BlockNumel), sizeof upper);
  return std::bit_cast<float>(static_cast<std::uint32_t>(upper) << 16);
}

int signed_value(std::byte byte) {
  const int value = std::to_integer<int>(byte);
  return value < 128 ? value : value - 256;
}

bool all_poisoned(const std::vector<float>& x) {
  return std::ranges::all_of(x, [](float v) { return std::bit_cast<std::uint32_t>(v) == kQuietNaNBits; });
}

}  // namespace

class Int8BlockTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void round_trip_stays_within_half_a_scale_data();
  void round_trip_stays_within_half_a_scale();
  void encoded_bytes_are_frozen();
  void ties_round_to_even();
  void scale_is_rounded_up_so_that_127_is_the_largest();
  void largest_magnitudes_are_not_biased();
  void cutting_at_blocks_does_not_change_the_bytes();
  void all_zero_block_has_scale_zero();
  void blocks_too_small_for_a_normal_scale_become_zero();
  void denormals_beside_larger_values_become_zero();
  void non_finite_value_poisons_its_block_only_data();
  void non_finite_value_poisons_its_block_only();
  void one_outlier_ruins_its_own_block_only();
  void largest_floats_are_encoded_without_overflow();
  void dequantize_add_is_dequantize_then_add();
  void any_bytes_decode_to_something_defined();
  void fp32_format_travels_bit_for_bit();
};

void Int8BlockTest::round_trip_stays_within_half_a_scale_data() {
  QTest::addColumn<int>("numel");
  for (const int numel : {1, 2, 127, 128, 129, 255, 256, 257, 1000, 4096 + 3}) QTest::addRow("%d", numel) << numel;
}

void Int8BlockTest::round_trip_stays_within_half_a_scale() {
  QFETCH(int, numel);
  const auto x = normal_values(static_cast<std::size_t>(numel), 7);

  const auto encoded = quantized(x);
  const auto back = dequantized(encoded, x.size());

  for (std::size_t i = 0; i < x.size(); ++i) {
    const float scale = scale_of(encoded, i / kInt8BlockNumel);
    // Half a step, and the roundings of inverse and product (each below 127 * 2^-24 of a step).
    QVERIFY(std::abs(back[i] - x[i]) <= scale * (0.5f + 0x1p-16f));
  }
}

void Int8BlockTest::encoded_bytes_are_frozen() {
  // absmax 12.7 makes the scale 0.0997, rounded up to 0x3dcd (0.1000977): 12.7 is 126.88 of them, 6.35 is 63.44.
  const std::vector<float> x{12.7f, -12.7f, 0.0f, 1.0f, -1.0f, 0.04f, 0.06f, 6.35f};

  const auto encoded = quantized(x);

  const QByteArray bytes(reinterpret_cast<const char*>(encoded.data()), std::ssize(encoded));
  QCOMPARE(bytes.toHex(), QByteArray("cd3d7f81000af600013f"));
}

void Int8BlockTest::ties_round_to_even() {
  const std::vector<float> x{kInt8Steps, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 126.5f};  // scale 1

  const auto back = dequantized(quantized(x), x.size());

  QCOMPARE(back, (std::vector<float>{127.0f, 0.0f, 2.0f, 2.0f, 0.0f, -2.0f, -2.0f, 126.0f}));
}

void Int8BlockTest::scale_is_rounded_up_so_that_127_is_the_largest() {
  std::mt19937 random(3);
  for (int trial = 0; trial < 20'000; ++trial) {
    // Any normal magnitude whose scale is normal too.
    const std::uint32_t bits = std::uniform_int_distribution<std::uint32_t>(0x06000000u, 0x7f7fffffu)(random);
    const float x = std::bit_cast<float>(bits);

    const auto encoded = quantized({x, -x});
    const auto back = dequantized(encoded, 2);

    const double exact = static_cast<double>(x) / static_cast<double>(kInt8Steps);
    const auto scale = static_cast<double>(scale_of(encoded));
    QVERIFY(scale >= exact * (1 - 0x1p-23));  // fp32's rounding of the quotient
    QVERIFY(scale < exact * (1 + 0x1p-7));
    const int q = signed_value(encoded[2]);
    QVERIFY(q == 126 || q == 127);
    QCOMPARE(signed_value(encoded[3]), -q);
    QVERIFY(std::isfinite(back[0]));
    QVERIFY(std::abs(back[0] - x) <= scale_of(encoded) * (0.5f + 0x1p-16f));
  }
}

void Int8BlockTest::largest_magnitudes_are_not_biased() {
  std::mt19937 random(4);
  std::uniform_real_distribution<float> exponent(0.0f, 8.0f);
  const int trials = 200'000;
  double error = 0;  // in steps, of which each is between -1/2 and 1/2

  for (int trial = 0; trial < trials; ++trial) {
    const float x = std::exp2(exponent(random));
    const auto encoded = quantized({x});
    error += static_cast<double>((dequantized(encoded, 1)[0] - x) / scale_of(encoded)) / trials;
  }

  // Standard error of the mean: at most 0.5 / sqrt(200'000) = 0.0011. With 127 for kInt8Steps it is 0.086.
  QVERIFY2(std::abs(error) <= 0.01, qPrintable(QString::number(error)));
}

void Int8BlockTest::cutting_at_blocks_does_not_change_the_bytes() {
  const auto x = normal_values(5 * kInt8BlockNumel + 17, 11);

  auto joined = quantized({x.begin(), x.begin() + 2 * kInt8BlockNumel});
  const auto rest = quantized({x.begin() + 2 * kInt8BlockNumel, x.end()});
  joined.insert(joined.end(), rest.begin(), rest.end());

  QVERIFY(joined == quantized(x));
}

void Int8BlockTest::all_zero_block_has_scale_zero() {
  std::vector<float> x(kInt8BlockNumel, 0.0f);
  x[3] = -0.0f;

  const auto encoded = quantized(x);

  QVERIFY(std::ranges::all_of(encoded, [](std::byte b) { return b == std::byte{0}; }));
}

void Int8BlockTest::blocks_too_small_for_a_normal_scale_become_zero() {
  const float smallest_kept = kInt8Steps * kMinInt8Scale;
  using Limits = std::numeric_limits<float>;

  QCOMPARE(scale_of(quantized({smallest_kept})), kMinInt8Scale);
  for (const float tiny : {0.99f * smallest_kept, Limits::min(), Limits::denorm_min()}) {
    QVERIFY(std::ranges::all_of(quantized({tiny, -tiny}), [](std::byte b) { return b == std::byte{0}; }));
  }
}

void Int8BlockTest::denormals_beside_larger_values_become_zero() {
  const float largest_denormal = std::nextafter(std::numeric_limits<float>::min(), 0.0f);

  const auto encoded = quantized({kInt8Steps * kMinInt8Scale, largest_denormal, -largest_denormal});

  QCOMPARE(encoded[3], std::byte{0});
  QCOMPARE(encoded[4], std::byte{0});
}

void Int8BlockTest::non_finite_value_poisons_its_block_only_data() {
  QTest::addColumn<float>("bad");
  QTest::newRow("nan") << kNaN;
  QTest::newRow("negative nan with payload") << std::bit_cast<float>(0xffc12345u);
  QTest::newRow("infinity") << kInfinity;
  QTest::newRow("negative infinity") << -kInfinity;
}

void Int8BlockTest::non_finite_value_poisons_its_block_only() {
  QFETCH(float, bad);
  std::vector<float> x(2 * kInt8BlockNumel, 1.0f);
  x[100] = bad;

  const auto encoded = quantized(x);
  const auto back = dequantized(encoded, x.size());

  QCOMPARE(std::bit_cast<std::uint32_t>(scale_of(encoded, 0)), kQuietNaNBits);
  QVERIFY(all_poisoned({back.begin(), back.begin() + kInt8BlockNumel}));
  for (std::size_t i = kInt8BlockNumel; i < x.size(); ++i) QVERIFY(std::abs(back[i] - 1.0f) <= 0.004f);  // half a step
}

void Int8BlockTest::one_outlier_ruins_its_own_block_only() {
  std::vector<float> x(2 * kInt8BlockNumel, 1.0f);
  x[0] = 1e30f;

  const auto back = dequantized(quantized(x), x.size());

  QCOMPARE(back[1], 0.0f);
  QVERIFY(std::abs(back[kInt8BlockNumel] - 1.0f) <= 0.004f);  // half a step
}

void Int8BlockTest::largest_floats_are_encoded_without_overflow() {
  const float largest = std::numeric_limits<float>::max();

  const auto back = dequantized(quantized({largest, -largest, 0.5f * largest}), 3);

  QVERIFY(std::isfinite(back[0]));
  QCOMPARE(back[1], -back[0]);
  QVERIFY(back[0] >= largest * (1 - 0.5f / 126));
  QVERIFY(std::isfinite(back[2]));
}

void Int8BlockTest::dequantize_add_is_dequantize_then_add() {
  const auto x = normal_values(777, 5);
  const auto own = normal_values(777, 6);
  const auto encoded = quantized(x);
  auto sum = own;

  decode_add_values(WireFormat::kInt8Block, encoded, sum);

  const auto plain = dequantized(encoded, x.size());
  for (std::size_t i = 0; i < sum.size(); ++i) QCOMPARE(sum[i], own[i] + plain[i]);
}

void Int8BlockTest::any_bytes_decode_to_something_defined() {
  std::vector<std::byte> encoded(2 + 2);
  encoded[2] = std::byte{0x80};  // -128, which no encoder writes
  encoded[3] = std::byte{0};
  const std::uint16_t one = 0x3f80;
  std::memcpy(encoded.data(), &one, sizeof one);
  QCOMPARE(dequantized(encoded, 2), (std::vector<float>{-128.0f, 0.0f}));

  for (const std::uint16_t scale : {0x7f80, 0xff80, 0x7fc0, 0xff81}) {  // infinities, NaNs
    std::memcpy(encoded.data(), &scale, sizeof scale);
    QVERIFY(all_poisoned(dequantized(encoded, 2)));
    std::vector<float> sum{1.0f, 2.0f};
    decode_add_values(WireFormat::kInt8Block, encoded, sum);
    QVERIFY(all_poisoned(sum));
  }
}

void Int8BlockTest::fp32_format_travels_bit_for_bit() {
  const std::vector<float> x{1.5f, -0.0f, kInfinity, std::numeric_limits<float>::denorm_min(), 3e38f};
  std::vector<std::byte> encoded(1 + x.size() * 4);
  const auto unaligned = std::span(encoded).subspan(1);
  std::vector<float> back(x.size());
  std::vector<float> sum(x.size(), 2.0f);

  encode_values(WireFormat::kFp32, x, unaligned);
  decode_values(WireFormat::kFp32, unaligned, back);
  decode_add_values(WireFormat::kFp32, unaligned, sum);

  QVERIFY(std::memcmp(back.data(), x.data(), x.size() * 4) == 0);
  QCOMPARE(sum[0], 3.5f);
}

QTEST_APPLESS_MAIN(Int8BlockTest)
#include "int8_block_test.moc"
