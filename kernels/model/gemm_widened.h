// Tiles of Bf16 matrices widened to fp32 as they are packed, in GCC's vectors of kLanes floats: compiled by
// gemm_plain.cpp, gemm_avx2.cpp and gemm_avx512.cpp, each for its own instructions, with multiplication and addition
// contracted
// (-ffp-contract=fast) where there is an instruction for both. Internal linkage, as gemm_blocks.h says.
#pragma once

#include "kernels/model/gemm_blocks.h"

namespace atl {
namespace {

inline float widened(Bf16 value) { return __builtin_bit_cast(float, static_cast<std::uint32_t>(value.bits) << 16); }
inline float widened(float value) { return value; }
inline void round_to(float value, float& to) { to = value; }
inline void round_to(float value, Bf16& to) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  to.bits = static_cast<std::uint16_t>(is_nan ? (bits >> 16) | 0x40u : rounded);
}

template <int kLanes, int kRowCount>
struct WidenedKernel {
  using Value = float;
  using Element = float;
  static constexpr std::int64_t kRows = kRowCount;
  static constexpr std::int64_t kColumns = 2 * kLanes;
  static constexpr std::int64_t kDepth = 512;
  typedef float Vector __attribute__((vector_size(kLanes * sizeof(float))));
  static_assert(kDepth * kRows * 4 <= kGemmRowBytes);

  static std::int64_t units(std::int64_t depth) { return depth; }
  static void pack_rows(const PanelSource& source, float* packed) { pack<kRows>(source, packed); }
  static void pack_columns(const PanelSource& source, float* packed) { pack<kColumns>(source, packed); }

  template <std::int64_t kPanel>
  static void pack(const PanelSource& source, float* __restrict packed) {
    for (std::int64_t i = 0; source.lanes < kPanel && i < kPanel * source.depth; ++i) packed[i] = 0;
    if (source.along_k) {
      for (std::int64_t lane = 0; lane < source.lanes; ++lane) {
        const Bf16* const row = source.first + lane * source.ld;
        for (std::int64_t k = 0; k < source.depth; ++k) packed[k * kPanel + lane] = widened(row[k]);
      }
    } else {
      const Bf16* row = source.first;
      for (std::int64_t k = 0; k < source.depth; ++k, row += source.ld, packed += kPanel) {
        for (std::int64_t lane = 0; lane < source.lanes; ++lane) packed[lane] = widened(row[lane]);
      }
    }
  }

  template <class Out>
  static void multiply_tile(const Tile<float, Out>& tile) {
    alignas(64) float product[kRows * kColumns];
    multiply_panels(tile.units, tile.a, tile.b, product);
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      float* const row = product + r * kColumns;
      if (tile.sums != nullptr) add_row(row, tile.sums + r * tile.ld_sums, tile.columns);
      if (tile.add != nullptr) add_row(row, tile.add + r * tile.ld_add, tile.columns);
      if (tile.held != nullptr) add_row(row, tile.held + r * tile.ldc, tile.columns);
      Out* const c = tile.c + r * tile.ldc;
      for (std::int64_t j = 0; j < tile.columns; ++j) round_to(row[j], c[j]);
    }
  }

  template <class From>
  static void add_row(float* row, const From* values, std::int64_t count) {
    for (std::int64_t j = 0; j < count; ++j) row[j] += widened(values[j]);
  }

  static void multiply_panels(std::int64_t units, const float* a, const float* b, float* product) {
    Vector sums[kRowCount][2] = {};
    for (std::int64_t unit = 0; unit < units; ++unit, a += kRows, b += kColumns) {
      const Vector left = *reinterpret_cast<const Vector*>(b);
      const Vector right = *reinterpret_cast<const Vector*>(b + kLanes);
#pragma GCC unroll 14
      for (int r = 0; r < kRowCount; ++r) {
        sums[r][0] += a[r] * left;
        sums[r][1] += a[r] * right;
      }
    }
#pragma GCC unroll 14
    for (int r = 0; r < kRowCount; ++r) {
      *reinterpret_cast<Vector*>(product + r * kColumns) = sums[r][0];
      *reinterpret_cast<Vector*>(product + r * kColumns + kLanes) = sums[r][1];
    }
  }
};

}  // namespace
}  // namespace atl
