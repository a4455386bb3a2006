// How attention's kernels divide their work among blocks: heads, tiles of a head's rows, groups of its columns.
// Included by .cu files alone.
#pragma once

#include <cstdint>

#include "kernels/model/attention_cuda.h"
#include "kernels/model/tile_products_cuda.h"

namespace atl::cuda {

inline constexpr float kLog2E = 1.4426950408889634f;
inline constexpr float kLn2 = 0.6931471805599453f;

// Head `head` of sequence `sequence` in a matrix that has a head's columns one after the other.
template <class T>
__device__ inline HeadRows<T> head_rows(T* data, std::int64_t stride, bool vectors, const AttentionSizes& sizes,
                                        std::int64_t sequence, std::int64_t head) {
  return {data + sequence * sizes.length * stride + head * sizes.head_dim, stride, static_cast<int>(sizes.length),
          static_cast<int>(sizes.head_dim), vectors};
}

// Where each row's document begins in a sequence; see AttentionForward::starts.
struct DocumentStarts {
  const std::int32_t* of_rows;  // of this sequence; nullptr: at 0
  int rows;

  // Of rows behind the end: 0.
  __device__ int operator[](int row) const { return of_rows == nullptr || row >= rows ? 0 : of_rows[row]; }
  // The first key of the first tile that a query sees, and those that follow it.
  __device__ int first_tile(int query) const { return (*this)[query] / kTile * kTile; }
};
__device__ inline DocumentStarts document_starts(const std::int32_t* starts, const AttentionSizes& sizes,
                                                 std::int64_t sequence) {
  return {starts == nullptr ? nullptr : starts + sequence * sizes.length, static_cast<int>(sizes.length)};
}

// Of a block: its tile of a head's rows, counted from 0, its head of `heads`, and the first of its columns.
struct BlockPlace {
  unsigned tile, sequence, head;
  int first_column;
};
template <int kHalves>
__device__ inline BlockPlace place_of_block(unsigned groups, unsigned heads, unsigned sequences) {
  const unsigned index = blockIdx.x / groups;
  return {index / heads / sequences, index / heads % sequences, index % heads,
          static_cast<int>(blockIdx.x % groups) * kHalves * kTile};
}

// How many blocks share a head's columns, each with `halves` tiles of them.
struct ColumnGroups {
  int halves, groups;
};
inline ColumnGroups column_groups(std::int64_t head_dim) {
  return head_dim <= kTile ? ColumnGroups{1, 1}
                           : ColumnGroups{2, static_cast<int>(divided_upwards(head_dim, 2 * kTile))};
}

// Whether the kernels' 32-bit indices and grids suffice, and whether the shape is one.
inline bool takes(const AttentionSizes& sizes) {
  const std::int64_t limit = std::int64_t{1} << 30;
  return sizes.length < limit && sizes.head_dim < limit && sizes.key_value_heads > 0 &&
         sizes.heads % sizes.key_value_heads == 0 &&
         divided_upwards(sizes.length, kTile) * sizes.sequences * sizes.heads * column_groups(sizes.head_dim).groups <=
             kMostGroups;
}

}  // namespace atl::cuda
