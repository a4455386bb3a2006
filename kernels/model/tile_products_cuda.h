// What attention's kernels are made of, device code: products of tiles of 64 x 64, of which each of 256 threads has 4 x
// 4 in registers and whose factors pass through shared memory, in fp32, 32 of the contracted dimension at a time: 8 KB
// of each factor for 131,072 multiplications. Included by .cu files alone.
#pragma once

#include <cstdint>

#include "kernels/model/device_cuda.h"

namespace atl::cuda {

inline constexpr int kTile = 64;   // queries, keys, or columns of a head
inline constexpr int kChunk = 32;  // of a contracted dimension, in shared memory at a time
inline constexpr int kTileThreads = 256;
inline constexpr int kSide = 16;  // of the square of threads
inline constexpr int kOwn = 4;    // rows, and columns, of a tile that a thread has
// Four floats more than a row has, so that eight threads' float4 of a column lie in different banks.
inline constexpr int kChunkStride = kChunk + 4;
inline constexpr int kTileStride = kTile + 4;

// A thread's part of a tile. Its rows are 4 y .. 4 y + 3, its columns, of scores, x, x + 16, x + 32, x + 48, so that a
// warp writes neighbouring ones; of all else, 4 x .. 4 x + 3.
using Own = float[kOwn][kOwn];
__device__ inline int thread_x() { return static_cast<int>(threadIdx.x) % kSide; }
__device__ inline int thread_y() { return static_cast<int>(threadIdx.x) / kSide; }

// One head's part of a sequence's rows: `rows` by `columns`, the first at `data`.
template <class T>
struct HeadRows {
  T* data;
  std::int64_t stride;
  int rows, columns;
  bool vectors;  // whether 16 bytes may be accessed at each eighth (bf16) or fourth (fp32) column
};

using Chunk = float[kTile * kChunkStride];
using Tile = float[kTile * kTileStride];

// to[r][c] = from[first_row + r][first_column + c], 0 beyond its end; eight values a thread.
template <int kRows, int kColumns, class T>
__device__ inline void stage(const HeadRows<const T>& from, int first_row, int first_column, float* to) {
  static_assert(kRows * kColumns == 8 * kTileThreads);
  constexpr int kThreadsOfRow = kColumns / 8;
  const int r = static_cast<int>(threadIdx.x) / kThreadsOfRow;
  const int c = static_cast<int>(threadIdx.x) % kThreadsOfRow * 8;
  const int row = first_row + r;
  const int column = first_column + c;
  const T* const source = from.data + row * from.stride + column;
  float x[8];
  if (from.vectors && row < from.rows && column + 8 <= from.columns) {
    const Values<T, 8> values = load<8>(source);
#pragma unroll
    for (int k = 0; k < 8; ++k) x[k] = values[k];
  } else {
#pragma unroll
    for (int k = 0; k < 8; ++k) x[k] = row < from.rows && column + k < from.columns ? load<1>(source + k)[0] : 0.0f;
  }
  store<8>(to + r * (kColumns + 4) + c, x);
}

// own += A B^T over kChunk: a, b [64][kChunkStride].
__device__ inline void add_rows_by_rows(const float* a, const float* b, Own& own) {
#pragma unroll 1
  for (int k = 0; k < kChunk; k += 4) {
    Values<float, 4> left[kOwn];
#pragma unroll
    for (int i = 0; i < kOwn; ++i) left[i] = load<4>(a + (thread_y() * kOwn + i) * kChunkStride + k);
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
      const Values<float, 4> right = load<4>(b + (thread_x() + j * kSide) * kChunkStride + k);
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
#pragma unroll
        for (int m = 0; m < 4; ++m) own[i][j] += left[i][m] * right[m];
      }
    }
  }
}

// own += A B over kChunk: a [64][kTileStride], from the first of its kChunk columns; b [kChunk][kTileStride].
__device__ inline void add_rows_by_columns(const float* a, const float* b, Own& own) {
#pragma unroll 1
  for (int k = 0; k < kChunk; k += 4) {
    Values<float, 4> left[kOwn];
#pragma unroll
    for (int i = 0; i < kOwn; ++i) left[i] = load<4>(a + (thread_y() * kOwn + i) * kTileStride + k);
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      const Values<float, 4> right = load<4>(b + (k + m) * kTileStride + thread_x() * kOwn);
#pragma unroll
      for (int i = 0; i < kOwn; ++i) {
#pragma unroll
        for (int j = 0; j < kOwn; ++j) own[i][j] += left[i][m] * right[j];
      }
    }
  }
}

// own += A^T B over kChunk: a, b [kChunk][kTileStride].
__device__ inline void add_columns_by_columns(const float* a, const float* b, Own& own) {
#pragma unroll 4
  for (int k = 0; k < kChunk; ++k) {
    const Values<float, 4> left = load<4>(a + k * kTileStride + thread_y() * kOwn);
    const Values<float, 4> right = load<4>(b + k * kTileStride + thread_x() * kOwn);
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
#pragma unroll
      for (int j = 0; j < kOwn; ++j) own[i][j] += left[i] * right[j];
    }
  }
}

// own += A B^T over all columns, of 64 rows each. Begins with a barrier: others may still read the chunks.
template <class T>
__device__ inline void multiply_rows(const HeadRows<const T>& a, int a_row, const HeadRows<const T>& b, int b_row,
                                     Chunk& left, Chunk& right, Own& own) {
#pragma unroll 1
  for (int column = 0; column < a.columns; column += kChunk) {
    __syncthreads();
    stage<kTile, kChunk>(a, a_row, column, left);
    stage<kTile, kChunk>(b, b_row, column, right);
    __syncthreads();
    add_rows_by_rows(left, right, own);
  }
}

// own[h] += W B's columns first_column + 64 h ..: W [64, 64] in shared memory, or with kTransposed its transpose; B: 64
// rows from b_row. Begins with a barrier, behind which W is whole.
template <bool kTransposed, int kHalves, class T>
__device__ inline void multiply_weights(const Tile& weights, const HeadRows<const T>& b, int b_row, int first_column,
                                        Chunk& chunk, Own (&own)[kHalves]) {
#pragma unroll
  for (int h = 0; h < kHalves; ++h) {
#pragma unroll 1
    for (int k = 0; k < kTile; k += kChunk) {
      __syncthreads();
      stage<kChunk, kTile>(b, b_row + k, first_column + h * kTile, chunk);
      __syncthreads();
      if constexpr (kTransposed) {
        add_columns_by_columns(weights + k * kTileStride, chunk, own[h]);
      } else {
        add_rows_by_columns(weights + k, chunk, own[h]);
      }
    }
  }
}
static_assert(kChunk * kTileStride <= kTile * kChunkStride);

__device__ inline void store_scores(const Own& own, Tile& to) {
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
#pragma unroll
    for (int j = 0; j < kOwn; ++j) to[(thread_y() * kOwn + i) * kTileStride + thread_x() + j * kSide] = own[i][j];
  }
}

// to[first_row + r][first_column + c] = own * factor(i), i of the thread's rows, where there is such a row and column.
template <class T, class Factor>
__device__ inline void store_tile(const Own& own, const HeadRows<T>& to, int first_row, int first_column,
                                  const Factor& factor) {
  const int column = first_column + thread_x() * kOwn;
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const int row = first_row + thread_y() * kOwn + i;
    if (row >= to.rows) continue;
    T* const target = to.data + row * to.stride + column;
    float x[kOwn];
#pragma unroll
    for (int j = 0; j < kOwn; ++j) x[j] = own[i][j] * factor(i);
    if (to.vectors && column + kOwn <= to.columns) {
      store<kOwn>(target, x);
    } else {
#pragma unroll
      for (int j = 0; j < kOwn; ++j) {
        const float one[1] = {x[j]};
        if (column + j < to.columns) store<1>(target + j, one);
      }
    }
  }
}

}  // namespace atl::cuda
