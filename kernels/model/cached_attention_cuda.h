// Attention over a cache of keys and values on the GPU, in plain fp32 arithmetic: what net/step/operation.h's
// CachedAttention computes. Host code; any thread with a current device.
//
// A launch writes the rows' keys and values to their places; the next one attends, a block of threads for a row and the
// heads that share a key. Where so few rows do not fill the card their keys are divided, and a third launch adds the
// parts up in their order (Flash-Decoding, Dao et al. 2023, https://crfm.stanford.edu/2023/10/12/flashdecoding.html).
//
// T is float or Bf16. All pointers: device memory, aligned to their types; 16 bytes are read and written at a time
// where addresses and sizes are multiples of that. Asynchronous on `stream`.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/model/model_kernels.h"

namespace atl::cuda {

template <class T>
struct CachedAttentionRows {
  std::int64_t rows, heads, key_value_heads;
  std::int64_t head_dim;            // at most kMostCachedHeadDim (cached_attention_split.h)
  std::int64_t capacity;            // positions of a slot
  const T* qkv;                     // [rows, (heads + 2 key_value_heads) head_dim]
  const std::int32_t* slot_of;      // [rows], -1 for a row that is not there
  const std::int32_t* position_of;  // [rows]
  T* keys;                          // [slots, key_value_heads, capacity, head_dim]
  T* values;
  T* out;          // [rows, heads * head_dim]
  float* scratch;  // cached_scratch_numel()
};
// Bytes that one row must move: those of the keys and values up to its position.
template <class T>
cudaError_t launch_cached_attention(const CachedAttentionRows<T>& attention, cudaStream_t stream);

}  // namespace atl::cuda
