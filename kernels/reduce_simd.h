// The rows of a norm (reduce.h) in vectors, which reduce.cpp calls where the processor has them. What codec_simd.h says
// of files with such instructions holds for reduce_avx2.cpp and reduce_avx512.cpp. A float's square is exact in double,
// so that a fused multiply-add rounds as an addition does.
#pragma once

#include <cstddef>

#include "kernels/reduce.h"

namespace atl {

#if defined(__x86_64__)
// row_squared_norm() and subtract_row() of whole groups of kNormLanes values: `count` is a multiple of it. The sums of
// the lanes are left in lanes [kNormLanes].
namespace avx2 {
void row_squares(const float* row, std::size_t count, double* lanes);
void subtract_row(const float* outer, float* row, std::size_t count, double* lanes);
}  // namespace avx2

namespace avx512 {
void row_squares(const float* row, std::size_t count, double* lanes);
void subtract_row(const float* outer, float* row, std::size_t count, double* lanes);
}  // namespace avx512
#endif

}  // namespace atl
