#include "kernels/reduce.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace atl {

void scaled_copy(std::span<const float> x, float factor, std::span<float> out) {
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = factor * x[i];
}

void scaled_sum_copy(std::span<const float> x, std::span<const float> y, float factor, std::span<float> out) {
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = factor * (x[i] + y[i]);
}

bool all_finite(std::span<const float> x) {
  constexpr std::size_t kSlice = 4096;  // between two looks at the result, so that the inner loop has no branch
  constexpr std::int32_t kExponent = 0x7f800000;
  for (std::size_t begin = 0; begin < x.size(); begin += kSlice) {
    const std::size_t count = std::min(kSlice, x.size() - begin);
    std::int32_t largest = 0;
    for (std::size_t i = 0; i < count; ++i) {
      largest = std::max(largest, std::bit_cast<std::int32_t>(x[begin + i]) & kExponent);
    }
    if (largest == kExponent) return false;
  }
  return true;
}

double squared_norm(std::span<const float> x) {
  std::array<double, kSquaredNormLanes> lanes{};
  const std::size_t whole = x.size() / kSquaredNormLanes * kSquaredNormLanes;
  for (std::size_t begin = 0; begin < whole; begin += kSquaredNormLanes) {
    for (std::size_t lane = 0; lane < kSquaredNormLanes; ++lane) {
      const double value = x[begin + lane];  // the square of a float is exact in double
      lanes[lane] += value * value;
    }
  }
  for (std::size_t i = whole; i < x.size(); ++i) lanes[i - whole] += static_cast<double>(x[i]) * x[i];
  for (std::size_t half = kSquaredNormLanes / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

}  // namespace atl
