#include "kernels/int8_codebook.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "kernels/float_bits.h"

namespace atl {
namespace {

constexpr std::size_t kEntries = 256;
constexpr double kSigmas = 6;

using Codebook = std::array<float, kEntries>;

struct Buckets {
  double low = 0;
  double width = 0;  // 0: one bucket holds all
};

Buckets buckets_of(const float* x, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += x[i];
  const double mean = sum / static_cast<double>(count);
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double off = x[i] - mean;
    squares += off * off;
  }
  const double sigma = std::sqrt(squares / static_cast<double>(count));
  return {mean - kSigmas * sigma, 2 * kSigmas * sigma / kEntries};
}

std::uint8_t code_of(double x, Buckets buckets) {
  if (buckets.width == 0) return 0;
  const double bucket = std::floor((x - buckets.low) / buckets.width);
  return static_cast<std::uint8_t>(std::clamp(bucket, 0.0, kEntries - 1.0));
}

}  // namespace

void encode_int8_codebook(const float* x, std::size_t count, std::byte* encoded) {
  Codebook codebook{};
  auto* const codes = reinterpret_cast<std::uint8_t*>(encoded + sizeof codebook);
  if (absmax_bits(x, count) >= kInfinityBits) {
    codebook.fill(quiet_nan());
    std::memset(codes, 0, count);
  } else {
    const Buckets buckets = buckets_of(x, count);
    std::array<double, kEntries> sums{};
    std::array<std::uint32_t, kEntries> counts{};
    for (std::size_t i = 0; i < count; ++i) {
      codes[i] = code_of(x[i], buckets);
      sums[codes[i]] += x[i];
      ++counts[codes[i]];
    }
    for (std::size_t k = 0; k < kEntries; ++k) {
      if (counts[k] > 0) codebook[k] = static_cast<float>(sums[k] / counts[k]);
      if (std::abs(codebook[k]) < std::numeric_limits<float>::min()) codebook[k] = 0.0f;
    }
  }
  std::memcpy(encoded, codebook.data(), sizeof codebook);
}

void decode_int8_codebook(const std::byte* encoded, std::size_t count, float* x) {
  Codebook codebook;
  std::memcpy(codebook.data(), encoded, sizeof codebook);
  const auto* const codes = reinterpret_cast<const std::uint8_t*>(encoded + sizeof codebook);
  for (std::size_t i = 0; i < count; ++i) x[i] = without_nan_payload(codebook[codes[i]]);
}

}  // namespace atl
