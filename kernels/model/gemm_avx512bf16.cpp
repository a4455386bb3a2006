// Compiled with -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512bf16; called only where the processor has them all.
//
// A tile is 14 x 32: 28 accumulators, two vectors of b and one pair of a fill the 32 registers, and a step needs 16
// loads for its 28 vdpbf16ps.
#include <immintrin.h>

#include "kernels/model/gemm_blocks.h"

namespace atl {
namespace {

constexpr std::int64_t kLanes = 16;  // pairs of k in one vector

__mmask32 first_words(std::int64_t count) {
  return count >= 32 ? 0xffffffffu : count <= 0 ? 0u : (1u << static_cast<unsigned>(count)) - 1u;
}
__mmask16 first_lanes(std::int64_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffffu : count <= 0 ? 0u : (1u << static_cast<unsigned>(count)) - 1u);
}

// Of 16 vectors of 16 pairs: in groups of four vectors, the 4x4 of pairs in each 128 bits is transposed; then, four
// vectors apart, the 4x4 of 128 bits.
inline void transpose(__m512i (&v)[16]) {
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    const __m512i low01 = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    const __m512i high01 = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    const __m512i low23 = _mm512_unpacklo_epi32(v[i + 2], v[i + 3]);
    const __m512i high23 = _mm512_unpackhi_epi32(v[i + 2], v[i + 3]);
    v[i] = _mm512_unpacklo_epi64(low01, low23);
    v[i + 1] = _mm512_unpackhi_epi64(low01, low23);
    v[i + 2] = _mm512_unpacklo_epi64(high01, high23);
    v[i + 3] = _mm512_unpackhi_epi64(high01, high23);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i even01 = _mm512_shuffle_i32x4(v[i], v[i + 4], 0x88);
    const __m512i odd01 = _mm512_shuffle_i32x4(v[i], v[i + 4], 0xdd);
    const __m512i even23 = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0x88);
    const __m512i odd23 = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0xdd);
    v[i] = _mm512_shuffle_i32x4(even01, even23, 0x88);
    v[i + 4] = _mm512_shuffle_i32x4(odd01, odd23, 0x88);
    v[i + 8] = _mm512_shuffle_i32x4(even01, even23, 0xdd);
    v[i + 12] = _mm512_shuffle_i32x4(odd01, odd23, 0xdd);
  }
}

// 16 lanes of `source` from `lane` on, to packed[unit * stride + lane]; lanes that are not there are zeros.
inline void pack_along_k(const PanelSource& source, std::int64_t lane, std::uint32_t* packed, std::int64_t stride) {
  const Bf16* const first = source.first + lane * source.ld;
  const std::int64_t lanes = source.lanes - lane;
  const std::int64_t units = (source.depth + 1) / 2;
  for (std::int64_t unit = 0; unit < units; unit += kLanes) {
    const __mmask32 there = first_words(source.depth - 2 * unit);
    __m512i v[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      v[i] = i < lanes ? _mm512_maskz_loadu_epi16(there, first + i * source.ld + 2 * unit) : _mm512_setzero_si512();
    }
    transpose(v);
    std::uint32_t* const to = packed + unit * stride + lane;
    if (unit + kLanes <= units) {
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) _mm512_store_si512(to + i * stride, v[i]);
    } else {
#pragma GCC unroll 16
      for (int i = 0; i < 16; ++i) {
        if (unit + i < units) _mm512_store_si512(to + i * stride, v[i]);
      }
    }
  }
}

// The first 16 kCount lanes. With one vector of them only its 32 bytes are touched: a longer load, masked or not, would
// mostly take two lines.
template <int kCount>
inline __m512i load_lanes(__mmask32 there, const Bf16* row) {
  if constexpr (kCount == 2) return _mm512_maskz_loadu_epi16(there, row);
  return _mm512_zextsi256_si512(_mm256_maskz_loadu_epi16(static_cast<__mmask16>(there), row));
}

// kCount: vectors of lanes, 1 or 2. Rows 2 unit and 2 unit + 1 of the source are interleaved.
template <int kCount>
inline void pack_across_k(const PanelSource& source, std::uint32_t* packed) {
  const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37,
                                       5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
  const __mmask32 there = first_words(source.lanes);
  const Bf16* row = source.first;
  std::int64_t k = 0;
  const auto pack = [&](__m512i even, __m512i odd) {
    _mm512_store_si512(packed, _mm512_permutex2var_epi16(even, low, odd));
    if constexpr (kCount == 2) _mm512_store_si512(packed + kLanes, _mm512_permutex2var_epi16(even, high, odd));
  };
  for (; k + 1 < source.depth; k += 2, row += 2 * source.ld, packed += kCount * kLanes) {
    pack(load_lanes<kCount>(there, row), load_lanes<kCount>(there, row + source.ld));
  }
  if (k < source.depth) pack(load_lanes<kCount>(there, row), _mm512_setzero_si512());
}

inline __m512 load(__mmask16 there, const float* p) { return _mm512_maskz_loadu_ps(there, p); }
inline __m512 load(__mmask16 there, const Bf16* p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(there, p)), 16));
}
inline void store(__mmask16 there, float* p, __m512 v) { _mm512_mask_storeu_ps(p, there, v); }
inline void store(__mmask16 there, Bf16* p, __m512 v) {
  _mm256_mask_storeu_epi16(p, there, (__m256i)_mm512_cvtneps_pbh(v));
}

template <int kRowCount, int kVectors, class Out>
void tile_of(const Tile<std::uint32_t, Out>& tile) {
  __m512 sums[kRowCount][kVectors];
#pragma GCC unroll 14
  for (int r = 0; r < kRowCount; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_setzero_ps();
  }
  const std::uint32_t* a = tile.a;
  const std::uint32_t* b = tile.b;
  for (std::int64_t unit = 0; unit < tile.units; ++unit, a += kLanes, b += 2 * kLanes) {
    __m512i columns[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) columns[v] = _mm512_load_si512(b + v * kLanes);
#pragma GCC unroll 14
    for (int r = 0; r < kRowCount; ++r) {
      const __m512i pair = _mm512_set1_epi32(static_cast<int>(a[r]));
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v)
        sums[r][v] = _mm512_dpbf16_ps(sums[r][v], (__m512bh)pair, (__m512bh)columns[v]);
    }
  }
#pragma GCC unroll 14
  for (int r = 0; r < kRowCount; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const __mmask16 there = first_lanes(tile.columns - v * kLanes);
      __m512 x = sums[r][v];
      const std::int64_t at = r * tile.ldc + v * kLanes;
      if (tile.sums != nullptr) x = _mm512_add_ps(x, load(there, tile.sums + r * tile.ld_sums + v * kLanes));
      if (tile.add != nullptr) x = _mm512_add_ps(x, load(there, tile.add + r * tile.ld_add + v * kLanes));
      if (tile.held != nullptr) x = _mm512_add_ps(x, load(there, tile.held + at));
      store(there, tile.c + at, x);
    }
  }
}

template <int kVectors, class Out>
void tile_of_rows(const Tile<std::uint32_t, Out>& tile) {
  switch (tile.rows) {
    case 1: return tile_of<1, kVectors>(tile);
    case 2: return tile_of<2, kVectors>(tile);
    case 3: return tile_of<3, kVectors>(tile);
    case 4: return tile_of<4, kVectors>(tile);
    case 5: return tile_of<5, kVectors>(tile);
    case 6: return tile_of<6, kVectors>(tile);
    case 7: return tile_of<7, kVectors>(tile);
    case 8: return tile_of<8, kVectors>(tile);
    case 9: return tile_of<9, kVectors>(tile);
    case 10: return tile_of<10, kVectors>(tile);
    case 11: return tile_of<11, kVectors>(tile);
    case 12: return tile_of<12, kVectors>(tile);
    case 13: return tile_of<13, kVectors>(tile);
    default: return tile_of<14, kVectors>(tile);
  }
}

struct PairKernel {
  using Value = Bf16;
  using Element = std::uint32_t;  // values 2 i and 2 i + 1 of k
  static constexpr std::int64_t kRows = 14;
  static constexpr std::int64_t kColumns = 2 * kLanes;
  static constexpr std::int64_t kDepth = 1024;

  static std::int64_t units(std::int64_t depth) { return (depth + 1) / 2; }
  static void pack_rows(const PanelSource& source, Element* packed) {
    return source.along_k ? pack_along_k(source, 0, packed, kLanes) : pack_across_k<1>(source, packed);
  }
  static void pack_columns(const PanelSource& source, Element* packed) {
    if (!source.along_k) return pack_across_k<2>(source, packed);
    pack_along_k(source, 0, packed, kColumns);
    if (source.lanes > kLanes) pack_along_k(source, kLanes, packed, kColumns);
  }
  template <class Out>
  static void multiply_tile(const Tile<Element, Out>& tile) {
    return tile.columns > kLanes ? tile_of_rows<2>(tile) : tile_of_rows<1>(tile);
  }
};
static_assert(PairKernel::kDepth / 2 * kLanes * 4 <= kGemmRowBytes);

}  // namespace

namespace avx512bf16 {
void multiply(const Gemm<Bf16, Bf16>& gemm) { multiply_blocks<PairKernel>(gemm); }
void multiply(const Gemm<Bf16, float>& gemm) { multiply_blocks<PairKernel>(gemm); }
}  // namespace avx512bf16
}  // namespace atl
