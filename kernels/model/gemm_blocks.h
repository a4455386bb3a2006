// The blocking of a matrix product, over a kernel that multiplies one tile (Goto and van de Geijn, "Anatomy of
// High-Performance Matrix Multiplication", 2008). Included by gemm_plain.cpp, gemm_avx2.cpp, gemm_avx512.cpp and
// gemm_avx512bf16.cpp alone, each with a kernel of its own in an unnamed namespace: so all that is instantiated here
// has internal linkage, and no other file can be linked with instructions that it must not have. For the same reason
// nothing here calls an inline function of the standard library.
//
// A block of b, [depth, columns], is packed once into the second-level cache, as panels of kColumns columns; then each
// kRows rows of a are packed into the first-level cache and multiplied with panel after panel. What k is cut into
// blocks for, the sums so far, is c itself where c is fp32, else a buffer of fp32.
#pragma once

#include <cstdint>

#include "kernels/model/gemm.h"

namespace atl {

// This thread's buffers, 64-byte aligned: packed panels of b, packed rows of a, sums.
struct GemmBuffers {
  void* b;
  void* a;
  float* sums;
};
inline constexpr std::int64_t kGemmBlockBytes = 512 * 1024;
inline constexpr std::int64_t kGemmRowBytes = 64 * 1024;
inline constexpr std::int64_t kGemmSums = 128 * 1024;
static_assert(kGemmBlockBytes + kGemmRowBytes + 4 * kGemmSums == kGemmBufferBytes);
GemmBuffers gemm_buffers();

namespace plain {
void multiply(const Gemm<Bf16, Bf16>& gemm);
void multiply(const Gemm<Bf16, float>& gemm);
}  // namespace plain
namespace avx2 {
void multiply(const Gemm<Bf16, Bf16>& gemm);
void multiply(const Gemm<Bf16, float>& gemm);
}  // namespace avx2
namespace avx512 {
void multiply(const Gemm<Bf16, Bf16>& gemm);
void multiply(const Gemm<Bf16, float>& gemm);
}  // namespace avx512
namespace avx512bf16 {
void multiply(const Gemm<Bf16, Bf16>& gemm);
void multiply(const Gemm<Bf16, float>& gemm);
}  // namespace avx512bf16

namespace {

constexpr std::int64_t min_of(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
constexpr std::int64_t rounded_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }

// Lanes of one packed panel: rows of op(a) or columns of op(b), from `first` on, and of each the `depth` values of k.
struct PanelSource {
  const Bf16* first = nullptr;
  std::int64_t ld = 0;
  bool along_k = false;  // neighbours in memory are neighbours in k, not lanes
  std::int64_t lanes = 0, depth = 0;
};

// One tile: c = a b (+ sums) (+ add) (+ held). a, b: packed panels of `units` steps of k.
template <class Element, class Out>
struct Tile {
  std::int64_t rows = 0, columns = 0, units = 0;
  const Element* a = nullptr;
  const Element* b = nullptr;
  const float* sums = nullptr;
  std::int64_t ld_sums = 0;
  const Out* add = nullptr;
  std::int64_t ld_add = 0;
  const Out* held = nullptr;  // of c's stride
  Out* c = nullptr;
  std::int64_t ldc = 0;
};

// How many values of k a block has, and how many columns.
struct BlockSize {
  std::int64_t depth, columns;
};
template <class Kernel>
BlockSize block_size(std::int64_t n, std::int64_t k) {
  const std::int64_t blocks = k > Kernel::kDepth ? (k + Kernel::kDepth - 1) / Kernel::kDepth : 1;
  const std::int64_t depth = rounded_up((k + blocks - 1) / blocks, 2);
  if (depth == 0) return {2, rounded_up(n, Kernel::kColumns)};
  const std::int64_t held = kGemmBlockBytes / static_cast<std::int64_t>(sizeof(typename Kernel::Value)) / depth;
  const std::int64_t most = held / Kernel::kColumns * Kernel::kColumns;
  const std::int64_t parts = (n + most - 1) / most;
  return {depth, rounded_up((n + parts - 1) / parts, Kernel::kColumns)};
}

template <class Kernel>
void pack_block(const Gemm<Bf16, float>& part, typename Kernel::Element* packed) {
  const std::int64_t panel = Kernel::units(part.k) * Kernel::kColumns;
  for (std::int64_t j = 0; j < part.n; j += Kernel::kColumns, packed += panel) {
    Kernel::pack_columns({.first = part.b + (part.transpose_b ? j * part.ldb : j),
                          .ld = part.ldb,
                          .along_k = part.transpose_b,
                          .lanes = min_of(part.n - j, Kernel::kColumns),
                          .depth = part.k},
                         packed);
  }
}

// The rows of one block: part's m, n, k are the block's; sums, add and held as in Tile, at the block's corner.
template <class Kernel, class Out>
void multiply_block(const Gemm<Bf16, float>& part, Tile<typename Kernel::Element, Out> tile,
                    const GemmBuffers& buffers) {
  using Element = typename Kernel::Element;
  tile.units = Kernel::units(part.k);
  tile.a = static_cast<const Element*>(buffers.a);
  // Rows are cut evenly: a last tile of few rows would wait for the latency of its own sums.
  const std::int64_t tiles = (part.m + Kernel::kRows - 1) / Kernel::kRows;
  for (std::int64_t index = 0; index < tiles; ++index) {
    const std::int64_t begin = part.m * index / tiles;
    tile.rows = part.m * (index + 1) / tiles - begin;
    Kernel::pack_rows({.first = part.a + (part.transpose_a ? begin : begin * part.lda),
                       .ld = part.lda,
                       .along_k = !part.transpose_a,
                       .lanes = tile.rows,
                       .depth = part.k},
                      static_cast<Element*>(buffers.a));
    auto at = tile;
    at.b = static_cast<const Element*>(buffers.b);
    if (at.sums != nullptr) at.sums += begin * at.ld_sums;
    if (at.add != nullptr) at.add += begin * at.ld_add;
    if (at.held != nullptr) at.held += begin * at.ldc;
    at.c += begin * at.ldc;
    for (std::int64_t j = 0; j < part.n; j += Kernel::kColumns) {
      at.columns = min_of(part.n - j, Kernel::kColumns);
      Kernel::multiply_tile(at);
      at.b += tile.units * Kernel::kColumns;
      if (at.sums != nullptr) at.sums += Kernel::kColumns;
      if (at.add != nullptr) at.add += Kernel::kColumns;
      if (at.held != nullptr) at.held += Kernel::kColumns;
      at.c += Kernel::kColumns;
    }
  }
}

// Where block k0 of [m0.., n0..] is written: the sums so far, or at last c.
template <class Kernel, class Out>
void multiply_depth(const Gemm<Bf16, Out>& gemm, const Gemm<Bf16, float>& part, std::int64_t m0, std::int64_t n0,
                    bool first, bool last, const GemmBuffers& buffers) {
  using Element = typename Kernel::Element;
  Out* const c = gemm.c + m0 * gemm.ldc + n0;
  if constexpr (sizeof(Out) == sizeof(float)) {
    const bool holds = gemm.accumulate || !first;
    multiply_block<Kernel>(
        part,
        Tile<Element, Out>{.add = gemm.add != nullptr && first ? gemm.add + m0 * gemm.ld_add + n0 : nullptr,
                           .ld_add = gemm.ld_add,
                           .held = holds ? c : nullptr,
                           .c = c,
                           .ldc = gemm.ldc},
        buffers);
  } else if (!last) {
    multiply_block<Kernel>(
        part, Tile<Element, float>{.held = first ? nullptr : buffers.sums, .c = buffers.sums, .ldc = part.n}, buffers);
  } else {
    multiply_block<Kernel>(part,
                           Tile<Element, Out>{.sums = first ? nullptr : buffers.sums,
                                              .ld_sums = part.n,
                                              .add = gemm.add != nullptr ? gemm.add + m0 * gemm.ld_add + n0 : nullptr,
                                              .ld_add = gemm.ld_add,
                                              .held = gemm.accumulate ? c : nullptr,
                                              .c = c,
                                              .ldc = gemm.ldc},
                           buffers);
  }
}

template <class Kernel, class Out>
void multiply_blocks(const Gemm<Bf16, Out>& gemm) {
  if (gemm.m <= 0 || gemm.n <= 0) return;
  const GemmBuffers buffers = gemm_buffers();
  const BlockSize size = block_size<Kernel>(gemm.n, gemm.k);
  const bool keeps_sums = sizeof(Out) != sizeof(float) && gemm.k > size.depth;
  const std::int64_t rows = keeps_sums ? kGemmSums / size.columns : gemm.m;
  for (std::int64_t m0 = 0; m0 < gemm.m; m0 += rows) {
    for (std::int64_t n0 = 0; n0 < gemm.n; n0 += size.columns) {
      for (std::int64_t k0 = 0; k0 == 0 || k0 < gemm.k; k0 += size.depth) {
        const Gemm<Bf16, float> part{.transpose_a = gemm.transpose_a,
                                     .transpose_b = gemm.transpose_b,
                                     .m = min_of(rows, gemm.m - m0),
                                     .n = min_of(size.columns, gemm.n - n0),
                                     .k = min_of(size.depth, gemm.k - k0),
                                     .a = gemm.a + (gemm.transpose_a ? k0 * gemm.lda + m0 : m0 * gemm.lda + k0),
                                     .lda = gemm.lda,
                                     .b = gemm.b + (gemm.transpose_b ? n0 * gemm.ldb + k0 : k0 * gemm.ldb + n0),
                                     .ldb = gemm.ldb};
        pack_block<Kernel>(part, static_cast<typename Kernel::Element*>(buffers.b));
        multiply_depth<Kernel>(gemm, part, m0, n0, k0 == 0, k0 + size.depth >= gemm.k, buffers);
      }
    }
  }
}

}  // namespace
}  // namespace atl
