#include "kernels/reduce.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

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

namespace {

double square(float x) { return static_cast<double>(x) * x; }  // exact

template <class Value, class Term>
double row_sum(const Value* row, std::size_t count, Term term) {
  std::array<double, kNormLanes> lanes{};
  const std::size_t whole = count / kNormLanes * kNormLanes;
  for (std::size_t begin = 0; begin < whole; begin += kNormLanes) {
    for (std::size_t lane = 0; lane < kNormLanes; ++lane) lanes[lane] += term(row[begin + lane]);
  }
  for (std::size_t i = whole; i < count; ++i) lanes[i - whole] += term(row[i]);
  for (std::size_t half = kNormLanes / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

template <class Value, class Term>
std::vector<double> row_sums(std::span<const Value> values, Term term) {
  std::vector<double> sums((values.size() + kNormRowNumel - 1) / kNormRowNumel);
  for (std::size_t row = 0; row < sums.size(); ++row) {
    const std::size_t begin = row * kNormRowNumel;
    sums[row] = row_sum(values.data() + begin, std::min(kNormRowNumel, values.size() - begin), term);
  }
  return sums;
}

}  // namespace

double row_squared_norm(std::span<const float> row) {
  return row_sum(row.data(), row.size(), [](float value) { return square(value); });
}

double fold_row_norms(std::vector<double> rows) {
  while (rows.size() > 1) rows = row_sums(std::span<const double>(rows), [](double sum) { return sum; });
  return rows.empty() ? 0.0 : rows.front();
}

double squared_norm(std::span<const float> x) {
  return fold_row_norms(row_sums(x, [](float value) { return square(value); }));
}

std::optional<double> finite_squared_norm(std::span<const float> x) {
  const double norm = squared_norm(x);
  if (!std::isfinite(norm)) return std::nullopt;
  return norm;
}

}  // namespace atl
