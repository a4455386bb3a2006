// Compiled and chosen as codec_avx2.cpp is (kernels/instruction_set.h).
#include <immintrin.h>

#include "kernels/reduce_simd.h"

namespace atl {
namespace {

// Of what is read next, into the second-level cache: the processor's own prefetching ends at each page.
constexpr std::size_t kPrefetchValues = 2048;

void add_squares(const float* values, __m256d (&sums)[4]) {
  for (std::size_t k = 0; k < 4; ++k) {
    const __m256d four = _mm256_cvtps_pd(_mm_loadu_ps(values + 4 * k));
    sums[k] = _mm256_add_pd(sums[k], _mm256_mul_pd(four, four));
  }
}

void store(const __m256d (&sums)[4], double* lanes) {
  for (std::size_t k = 0; k < 4; ++k) _mm256_storeu_pd(lanes + 4 * k, sums[k]);
}

}  // namespace

void avx2::row_squares(const float* row, std::size_t count, double* lanes) {
  __m256d sums[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};
  for (std::size_t i = 0; i < count; i += kNormLanes) add_squares(row + i, sums);
  store(sums, lanes);
}

void avx2::subtract_row(const float* outer, float* row, std::size_t count, double* lanes) {
  __m256d sums[4] = {_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd()};
  for (std::size_t i = 0; i < count; i += kNormLanes) {
    _mm_prefetch(reinterpret_cast<const char*>(outer + i + kPrefetchValues), _MM_HINT_T1);
    _mm_prefetch(reinterpret_cast<const char*>(row + i + kPrefetchValues), _MM_HINT_T1);
    for (std::size_t k = i; k < i + kNormLanes; k += 8) {
      _mm256_storeu_ps(row + k, _mm256_sub_ps(_mm256_loadu_ps(outer + k), _mm256_loadu_ps(row + k)));
    }
    add_squares(row + i, sums);
  }
  store(sums, lanes);
}

}  // namespace atl
