// Attention over a cache of keys and values, on one CPU thread: what net/step/operation.h's CachedAttention computes
// once the cache holds the new rows' keys and values. Callers divide the work by runs of rows and key heads, and bring
// scratch. T, sums and rounding as in kernels/model/attention.h. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/model/attention.h"

namespace atl {

struct CachedAttentionSizes {
  std::int64_t heads = 0, key_value_heads = 0, head_dim = 0;
  std::int64_t capacity = 0;  // positions of a slot
  constexpr std::int64_t qkv_columns() const { return (heads + 2 * key_value_heads) * head_dim; }
};

template <class T>
struct CachedAttentionPass {
  CachedAttentionSizes sizes;
  const T* qkv = nullptr;     // [rows, qkv_columns]
  const T* keys = nullptr;    // [slots, key_value_heads, capacity, head_dim]
  const T* values = nullptr;  // as keys
  T* out = nullptr;           // [rows, heads * head_dim]
};

// Rows [row, row + count) of one slot, at positions [position, position + count); at most kAttentionQueries.
struct CachedRun {
  std::int64_t row = 0, count = 0, slot = 0, position = 0;
};

// Writes `out` of the run's rows and of the heads that share key_value_head. A single row, of which each token of a
// text that is being written is one, reads keys and values once for all these heads.
template <class T>
void cached_attention_group(const CachedAttentionPass<T>& pass, const CachedRun& run, std::int64_t key_value_head,
                            std::byte* scratch, Sgemm sgemm, GemmKernel kernel = chosen_gemm_kernel());

// Of one thread; `scratch` is aligned to 64 bytes. Does not grow with the length.
constexpr std::int64_t cached_attention_scratch_bytes(const CachedAttentionSizes& sizes) {
  const std::int64_t keys = sizes.capacity < kAttentionKeys ? (sizes.capacity + 15) / 16 * 16 : kAttentionKeys;
  return 4 * kAttentionQueries * (2 * keys + sizes.head_dim + 2);
}

}  // namespace atl
