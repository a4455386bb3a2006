// Attention over a cache tile by tile; included by the same files as attention_tiles.h, after it, on the same terms.
#pragma once

#include "kernels/model/attention_tiles.h"
#include "kernels/model/cached_attention.h"

namespace atl {

namespace {

// sum += weight * x.
template <class T>
void add_scaled(const T* x, float weight, std::int64_t count, float* sum) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(sum + i, load(sum + i) + load(x + i) * weight);
  for (; i < count; ++i) sum[i] += value_of(x[i]) * weight;
}

// Where one group's keys and values of one slot lie, a position after the other, and scratch for a tile.
template <class T>
struct CachedGroup {
  const T *keys, *values;  // [capacity, head_dim]
  float* scores;           // [kAttentionQueries, ld]
  T* p;
  float* sums;  // [kAttentionQueries, head_dim]
  RowState* states;
  std::int64_t ld;
};
template <class T>
CachedGroup<T> cached_group(const CachedAttentionPass<T>& pass, const CachedRun& run, std::int64_t key_value_head,
                            std::byte* scratch) {
  const CachedAttentionSizes& sizes = pass.sizes;
  const std::int64_t first = (run.slot * sizes.key_value_heads + key_value_head) * sizes.capacity * sizes.head_dim;
  CachedGroup<T> group{pass.keys + first, pass.values + first, nullptr, nullptr, nullptr, nullptr, 0};
  group.ld = sizes.capacity < kAttentionKeys ? (sizes.capacity + 15) / 16 * 16 : kAttentionKeys;
  group.scores = take<float>(scratch, kAttentionQueries * group.ld);
  group.p =
      sizeof(T) == sizeof(float) ? reinterpret_cast<T*>(group.scores) : take<T>(scratch, kAttentionQueries * group.ld);
  group.sums = take<float>(scratch, kAttentionQueries * sizes.head_dim);
  group.states = take<RowState>(scratch, kAttentionQueries);
  return group;
}

// One row: its heads of the group are the tile's queries, which all see the same keys. Products of so few rows are dots
// and sums of rows: to pack keys for a matrix product would cost more than the product.
template <class T>
void cached_row(const CachedAttentionPass<T>& pass, const CachedRun& run, std::int64_t first_head, std::int64_t heads,
                const CachedGroup<T>& group) {
  const std::int64_t head_dim = pass.sizes.head_dim;
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(head_dim));
  const T* const queries = pass.qkv + run.row * pass.sizes.qkv_columns() + first_head * head_dim;
  ScoreTile tile{.query = run.position, .queries = heads};
  for (std::int64_t i = 0; i < heads * head_dim; ++i) group.sums[i] = 0;
  for (tile.key = 0; tile.key <= run.position; tile.key += kAttentionKeys) {
    tile.keys = min_of(kAttentionKeys, run.position + 1 - tile.key);
    const T* key = group.keys + tile.key * head_dim;
    for (std::int64_t k = 0; k < tile.keys; ++k, key += head_dim) {
      for (std::int64_t h = 0; h < heads; ++h)
        group.scores[h * group.ld + k] = dot(queries + h * head_dim, key, head_dim);
    }
    softmax_tile(tile, scale, head_dim, group.scores, group.ld, group.p, group.states, group.sums);
    const T* value = group.values + tile.key * head_dim;
    for (std::int64_t k = 0; k < tile.keys; ++k, value += head_dim) {
      for (std::int64_t h = 0; h < heads; ++h) {
        add_scaled(value, value_of(group.p[h * group.ld + k]), head_dim, group.sums + h * head_dim);
      }
    }
  }
  T* const out = pass.out + (run.row * pass.sizes.heads + first_head) * head_dim;
  for (std::int64_t h = 0; h < heads; ++h) {
    scaled(group.sums + h * head_dim, 1.0f / group.states[h].sum, head_dim, out + h * head_dim);
  }
}

// Several rows, one head.
template <class T>
void cached_rows(const CachedAttentionPass<T>& pass, const CachedRun& run, std::int64_t head,
                 const CachedGroup<T>& group, const Products& multiply_by) {
  const std::int64_t head_dim = pass.sizes.head_dim;
  const std::int64_t columns = pass.sizes.qkv_columns();
  const float scale = 1.0f / __builtin_sqrtf(static_cast<float>(head_dim));
  const T* const queries = pass.qkv + run.row * columns + head * head_dim;
  ScoreTile tile{.query = run.position, .queries = run.count};
  const std::int64_t keys = run.position + run.count;
  for (tile.key = 0; tile.key < keys; tile.key += kAttentionKeys) {
    tile.keys = min_of(kAttentionKeys, keys - tile.key);
    ScoreTile products = tile;  // whose queries begin with the run's own rows
    products.query = 0;
    multiply_by(scores_of(products, queries, columns, group.keys, head_dim, head_dim, group.scores, group.ld));
    softmax_tile(tile, scale, head_dim, group.scores, group.ld, group.p, group.states, group.sums);
    multiply_by(over_keys(products, group.p, group.ld, group.values, head_dim, head_dim, group.sums));
  }
  const std::int64_t out_columns = pass.sizes.heads * head_dim;
  T* const out = pass.out + run.row * out_columns + head * head_dim;
  for (std::int64_t r = 0; r < run.count; ++r) {
    scaled(group.sums + r * head_dim, 1.0f / group.states[r].sum, head_dim, out + r * out_columns);
  }
}

template <class T>
void cached_group_forward(const CachedAttentionPass<T>& pass, const CachedRun& run, std::int64_t key_value_head,
                          std::byte* scratch, const Products& multiply_by) {
  const std::int64_t shared_by = pass.sizes.heads / pass.sizes.key_value_heads;
  const CachedGroup<T> group = cached_group(pass, run, key_value_head, scratch);
  for (std::int64_t h = 0; h < shared_by; h += run.count == 1 ? kAttentionQueries : 1) {
    const std::int64_t head = key_value_head * shared_by + h;
    if (run.count == 1) {
      cached_row(pass, run, head, min_of(kAttentionQueries, shared_by - h), group);
    } else {
      cached_rows(pass, run, head, group, multiply_by);
    }
  }
}

}  // namespace
}  // namespace atl
