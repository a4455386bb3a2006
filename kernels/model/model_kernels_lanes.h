// A processor's vectors of floats, as the compilers' own vector types (GCC's and clang's vector_size): operators work
// on each lane. Included by model_kernels_{plain,avx2,avx512}.cpp alone, each of which says how many lanes its
// instructions have (ATOLL_MODEL_LANES). All is in an unnamed namespace and calls no inline function of the standard
// library, so that no other file can be linked with instructions that it must not have.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstdint>

#include "kernels/float_bits.h"
#include "kernels/model/model_kernels.h"

#if !defined(ATOLL_MODEL_LANES)
#error "say how many floats a vector has: ATOLL_MODEL_LANES"
#endif
// A call would pass vectors through memory.
#define ATOLL_LANES_INLINE inline __attribute__((always_inline))

namespace atl {
namespace {

constexpr int kLanes = ATOLL_MODEL_LANES;

using Floats = float __attribute__((vector_size(4 * kLanes)));
using Ints = std::int32_t __attribute__((vector_size(4 * kLanes)));
using Words = std::uint32_t __attribute__((vector_size(4 * kLanes)));
using Halves = std::uint16_t __attribute__((vector_size(2 * kLanes)));

ATOLL_LANES_INLINE Floats all(float x) { return x - Floats{}; }
ATOLL_LANES_INLINE Words bits(Floats x) { return __builtin_bit_cast(Words, x); }

ATOLL_LANES_INLINE float widened(float x) { return x; }
ATOLL_LANES_INLINE float widened(Bf16 x) { return __builtin_bit_cast(float, static_cast<std::uint32_t>(x.bits) << 16); }

// Floats whose upper halves are rounded to nearest even: just under half of the last bit kept, and that bit, so that a
// tie carries only into an odd one. Every NaN becomes the quiet one, as in kernels/bf16.h.
ATOLL_LANES_INLINE Words rounded_bits(Floats x) {
  const Words rounded = bits(x) + (0x7fffu + ((bits(x) >> 16) & 1u));
  return x == x ? rounded : Words{} + kQuietNaNBits;
}

// What is left to the processor's own instructions. larger, smaller: b where one of the two is NaN. load_upper,
// store_upper: between 16 bits a lane and 32, where the compilers' own conversions take vectors apart and put them
// together again.
#if defined(__x86_64__) && ATOLL_MODEL_LANES == 16
ATOLL_LANES_INLINE Floats larger(Floats a, Floats b) { return _mm512_max_ps(a, b); }
ATOLL_LANES_INLINE Floats smaller(Floats a, Floats b) { return _mm512_min_ps(a, b); }
ATOLL_LANES_INLINE Floats square_root(Floats x) { return _mm512_sqrt_ps(x); }
ATOLL_LANES_INLINE Words load_upper(const Bf16* p) {
  const __m256i upper = _mm256_loadu_si256(reinterpret_cast<const __m256i_u*>(p));
  return __builtin_bit_cast(Words, _mm512_slli_epi32(_mm512_cvtepu16_epi32(upper), 16));
}
ATOLL_LANES_INLINE void store_upper(Bf16* p, Words x) {
  const __m512i upper = _mm512_srli_epi32(__builtin_bit_cast(__m512i, x), 16);
  _mm256_storeu_si256(reinterpret_cast<__m256i_u*>(p), _mm512_cvtepi32_epi16(upper));
}
#elif defined(__x86_64__) && ATOLL_MODEL_LANES == 8
ATOLL_LANES_INLINE Floats larger(Floats a, Floats b) { return _mm256_max_ps(a, b); }
ATOLL_LANES_INLINE Floats smaller(Floats a, Floats b) { return _mm256_min_ps(a, b); }
ATOLL_LANES_INLINE Floats square_root(Floats x) { return _mm256_sqrt_ps(x); }
ATOLL_LANES_INLINE Words load_upper(const Bf16* p) {
  const __m128i upper = _mm_loadu_si128(reinterpret_cast<const __m128i_u*>(p));
  return __builtin_bit_cast(Words, _mm256_slli_epi32(_mm256_cvtepu16_epi32(upper), 16));
}
ATOLL_LANES_INLINE void store_upper(Bf16* p, Words x) {
  const __m256i upper = _mm256_srli_epi32(__builtin_bit_cast(__m256i, x), 16);
  const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i_u*>(p), packed);
}
#elif defined(__x86_64__)
ATOLL_LANES_INLINE Floats larger(Floats a, Floats b) { return _mm_max_ps(a, b); }
ATOLL_LANES_INLINE Floats smaller(Floats a, Floats b) { return _mm_min_ps(a, b); }
ATOLL_LANES_INLINE Floats square_root(Floats x) { return _mm_sqrt_ps(x); }
ATOLL_LANES_INLINE Words load_upper(const Bf16* p) {
  const __m128i upper = _mm_loadl_epi64(reinterpret_cast<const __m128i_u*>(p));
  return __builtin_bit_cast(Words, _mm_unpacklo_epi16(_mm_setzero_si128(), upper));
}
ATOLL_LANES_INLINE void store_upper(Bf16* p, Words x) {
  const __m128i upper = _mm_srai_epi32(__builtin_bit_cast(__m128i, x), 16);  // signed: SSE2 saturates only those
  _mm_storel_epi64(reinterpret_cast<__m128i_u*>(p), _mm_packs_epi32(upper, upper));
}
#else
ATOLL_LANES_INLINE Floats larger(Floats a, Floats b) { return a > b ? a : b; }
ATOLL_LANES_INLINE Floats smaller(Floats a, Floats b) { return a < b ? a : b; }
ATOLL_LANES_INLINE Floats square_root(Floats x) {
  Floats root{};
  for (int lane = 0; lane < kLanes; ++lane) root[lane] = __builtin_sqrtf(x[lane]);
  return root;
}
ATOLL_LANES_INLINE Words load_upper(const Bf16* p) {
  Halves upper;
  __builtin_memcpy(&upper, p, sizeof upper);
  return __builtin_convertvector(upper, Words) << 16;
}
ATOLL_LANES_INLINE void store_upper(Bf16* p, Words x) {
  const Halves upper = __builtin_convertvector(x >> 16, Halves);
  __builtin_memcpy(static_cast<void*>(p), &upper, sizeof upper);
}
#endif

ATOLL_LANES_INLINE Floats load_whole(const float* p) {
  Floats x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}
ATOLL_LANES_INLINE Floats load_whole(const Bf16* p) { return __builtin_bit_cast(Floats, load_upper(p)); }
ATOLL_LANES_INLINE void store_whole(float* p, Floats x) { __builtin_memcpy(p, &x, sizeof x); }
ATOLL_LANES_INLINE void store_whole(Bf16* p, Floats x) { store_upper(p, rounded_bits(x)); }

// A vector's worth of elements, or (Part) the fewer that are left at the end of a row.
struct Whole {
  template <class T>
  ATOLL_LANES_INLINE static Floats load(const T* p, float = 0) {
    return load_whole(p);
  }
  template <class T>
  ATOLL_LANES_INLINE static void store(T* p, Floats x) {
    store_whole(p, x);
  }
};
struct Part {
  int count;
  // Lanes without an element are `rest`.
  template <class T>
  ATOLL_LANES_INLINE Floats load(const T* p, float rest = 0) const {
    T elements[kLanes] = {};
    for (int i = 0; i < count; ++i) elements[i] = p[i];
    Floats x = load_whole(elements);
    for (int i = count; i < kLanes; ++i) x[i] = rest;
    return x;
  }
  template <class T>
  ATOLL_LANES_INLINE void store(T* p, Floats x) const {
    T elements[kLanes];
    store_whole(elements, x);
    for (int i = 0; i < count; ++i) p[i] = elements[i];
  }
};

// step(first element, Whole or Part) over [from, count).
template <class Step>
ATOLL_LANES_INLINE void for_each_vector(std::int64_t from, std::int64_t count, Step step) {
  std::int64_t i = from;
  for (; i + kLanes <= count; i += kLanes) step(i, Whole{});
  if (i < count) step(i, Part{static_cast<int>(count - i)});
}

ATOLL_LANES_INLINE float folded_sum(Floats x) {
  float lanes[kLanes];
  __builtin_memcpy(lanes, &x, sizeof lanes);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

// Several sums side by side: an addition takes several clocks, and each must wait for the one before it.
constexpr int kSums = 4;
template <class Term>
ATOLL_LANES_INLINE float sum_of(std::int64_t from, std::int64_t count, Term term) {
  Floats sums[kSums] = {};
  std::int64_t i = from;
  for (; i + kSums * kLanes <= count; i += kSums * kLanes) {
    for (int k = 0; k < kSums; ++k) sums[k] += term(i + k * kLanes, Whole{});
  }
  for_each_vector(i, count, [&](std::int64_t at, auto lanes) { sums[0] += term(at, lanes); });
  return folded_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// e^x to 1.3 ulp: range reduction by ln 2 in two parts, then a polynomial of degree 6 (Cephes expf). 0 from e^-87.7
// down, infinity from e^88.4 up; NaN stays NaN.
ATOLL_LANES_INLINE Floats exponential(Floats x) {
  x = smaller(all(89.0f), larger(all(-88.0f), x));
  const Floats shifted = x * 1.44269504f + 12582912.0f;  // rounds to an integer in the low mantissa bits
  const Floats n = shifted - 12582912.0f;
  const Floats r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Floats p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + (r + 1.0f);
  return p * __builtin_bit_cast(Floats, (bits(shifted) - (0x4b400000u - 127u)) << 23);
}

}  // namespace
}  // namespace atl
