#include "kernels/reduce.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/instruction_set.h"
#include "kernels/reduce_simd.h"

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

double fold(std::array<double, kNormLanes>& lanes) {
  for (std::size_t half = kNormLanes / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

double row_sum(const double* row, std::size_t count) {
  std::array<double, kNormLanes> lanes{};
  const std::size_t whole = count / kNormLanes * kNormLanes;
  for (std::size_t begin = 0; begin < whole; begin += kNormLanes) {
    for (std::size_t lane = 0; lane < kNormLanes; ++lane) lanes[lane] += row[begin + lane];
  }
  for (std::size_t i = whole; i < count; ++i) lanes[i - whole] += row[i];
  return fold(lanes);
}

// row <- outer - row, and the sums of their squares; of whole groups of kNormLanes values.
void subtract(const float* outer, float* row, std::size_t count, double* lanes) {
#if defined(__x86_64__)
  switch (chosen_instruction_set()) {
    case InstructionSet::kAvx512: return avx512::subtract_row(outer, row, count, lanes);
    case InstructionSet::kAvx2: return avx2::subtract_row(outer, row, count, lanes);
    case InstructionSet::kPlain: break;
  }
#endif
  for (std::size_t begin = 0; begin < count; begin += kNormLanes) {
    for (std::size_t lane = 0; lane < kNormLanes; ++lane) {
      row[begin + lane] = outer[begin + lane] - row[begin + lane];
      lanes[lane] += square(row[begin + lane]);
    }
  }
}

// The sums of the squares alone.
void squares(const float* row, std::size_t count, double* lanes) {
#if defined(__x86_64__)
  switch (chosen_instruction_set()) {
    case InstructionSet::kAvx512: return avx512::row_squares(row, count, lanes);
    case InstructionSet::kAvx2: return avx2::row_squares(row, count, lanes);
    case InstructionSet::kPlain: break;
  }
#endif
  for (std::size_t begin = 0; begin < count; begin += kNormLanes) {
    for (std::size_t lane = 0; lane < kNormLanes; ++lane) lanes[lane] += square(row[begin + lane]);
  }
}

std::vector<double> sums_of_rows(const std::vector<double>& values) {
  std::vector<double> sums((values.size() + kNormRowNumel - 1) / kNormRowNumel);
  for (std::size_t row = 0; row < sums.size(); ++row) {
    const std::size_t begin = row * kNormRowNumel;
    sums[row] = row_sum(values.data() + begin, std::min(kNormRowNumel, values.size() - begin));
  }
  return sums;
}

}  // namespace

double row_squared_norm(std::span<const float> row) {
  std::array<double, kNormLanes> lanes{};
  const std::size_t whole = row.size() / kNormLanes * kNormLanes;
  squares(row.data(), whole, lanes.data());
  for (std::size_t i = whole; i < row.size(); ++i) lanes[i - whole] += square(row[i]);
  return fold(lanes);
}

double subtract_row(std::span<const float> outer, std::span<float> row) {
  std::array<double, kNormLanes> lanes{};
  const std::size_t whole = row.size() / kNormLanes * kNormLanes;
  subtract(outer.data(), row.data(), whole, lanes.data());
  for (std::size_t i = whole; i < row.size(); ++i) {
    row[i] = outer[i] - row[i];
    lanes[i - whole] += square(row[i]);
  }
  return fold(lanes);
}

double fold_row_norms(std::vector<double> rows) {
  while (rows.size() > 1) rows = sums_of_rows(rows);
  return rows.empty() ? 0.0 : rows.front();
}

double squared_norm(std::span<const float> x) {
  std::vector<double> sums((x.size() + kNormRowNumel - 1) / kNormRowNumel);
  for (std::size_t row = 0; row < sums.size(); ++row) {
    const std::size_t begin = row * kNormRowNumel;
    sums[row] = row_squared_norm(x.subspan(begin, std::min(kNormRowNumel, x.size() - begin)));
  }
  return fold_row_norms(std::move(sums));
}

std::optional<double> finite_squared_norm(std::span<const float> x) {
  const double norm = squared_norm(x);
  if (!std::isfinite(norm)) return std::nullopt;
  return norm;
}

}  // namespace atl
