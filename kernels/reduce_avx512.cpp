// Compiled and chosen as codec_avx512.cpp is (kernels/instruction_set.h).
#include <immintrin.h>

#include "kernels/reduce_simd.h"

namespace atl {
namespace {

// Of what is read next, into the second-level cache: the processor's own prefetching ends at each page.
constexpr std::size_t kPrefetchValues = 2048;

void add_squares(__m512 values, __m512d (&sums)[2]) {
  const __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(values));
  const __m512d high = _mm512_cvtps_pd(_mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(values), 1)));
  sums[0] = _mm512_fmadd_pd(low, low, sums[0]);
  sums[1] = _mm512_fmadd_pd(high, high, sums[1]);
}

void store(const __m512d (&sums)[2], double* lanes) {
  _mm512_storeu_pd(lanes, sums[0]);
  _mm512_storeu_pd(lanes + 8, sums[1]);
}

}  // namespace

void avx512::row_squares(const float* row, std::size_t count, double* lanes) {
  __m512d sums[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()};
  for (std::size_t i = 0; i < count; i += kNormLanes) {
    add_squares(_mm512_loadu_ps(row + i), sums);
  }
  store(sums, lanes);
}

void avx512::subtract_row(const float* outer, float* row, std::size_t count, double* lanes) {
  __m512d sums[2] = {_mm512_setzero_pd(), _mm512_setzero_pd()};
  for (std::size_t i = 0; i < count; i += kNormLanes) {
    _mm_prefetch(reinterpret_cast<const char*>(outer + i + kPrefetchValues), _MM_HINT_T1);
    _mm_prefetch(reinterpret_cast<const char*>(row + i + kPrefetchValues), _MM_HINT_T1);
    const __m512 values = _mm512_sub_ps(_mm512_loadu_ps(outer + i), _mm512_loadu_ps(row + i));
    _mm512_storeu_ps(row + i, values);
    add_squares(values, sums);
  }
  store(sums, lanes);
}

}  // namespace atl
