// Causal attention on the GPU in plain fp32 arithmetic (FlashAttention-2, arXiv:2307.08691, with a second pass over the
// keys in place of atomic additions): for what cuDNN does not take, which is fp32, head sizes that are not multiples of
// 8, and attention that is kept within documents. What it computes is said in net/step/operation.h. Host code; any
// thread with a current device.
//
// T is float or Bf16. All pointers: device memory, aligned to their types; matrices are row-major, their rows `stride`
// elements apart. Any head_dim; over 128, scores are computed once for each 128 of it. Asynchronous on `stream`.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/model/model_kernels.h"

namespace atl::cuda {

// As AttentionShape of net/step/operation.h: of a row of qkv, heads queries, key_value_heads keys, key_value_heads
// values.
struct AttentionSizes {
  std::int64_t sequences, length, heads, key_value_heads, head_dim;
};

template <class T>
struct AttentionForward {
  AttentionSizes sizes;
  const T* qkv;
  std::int64_t qkv_stride;
  T* out;
  std::int64_t out_stride;
  float* logsumexp;  // [sequences * heads, length]
  // [sequences * length], where in its sequence each row's document begins (Attention of net/step/operation.h), before
  // which it sees nothing and no tile is computed. nullptr: a sequence is one document.
  const std::int32_t* starts = nullptr;
};
template <class T>
cudaError_t launch_attention(const AttentionForward<T>& attention, cudaStream_t stream);

template <class T>
struct AttentionGradient {
  AttentionSizes sizes;
  const T* dout;
  std::int64_t dout_stride;
  const T* qkv;
  std::int64_t qkv_stride;
  const T* out;
  std::int64_t out_stride;
  const float* logsumexp;
  T* dqkv;  // overlaps no input
  std::int64_t dqkv_stride;
  float* scratch;                        // attention_backward_scratch_numel(sizes)
  const std::int32_t* starts = nullptr;  // as of AttentionForward
};
inline std::int64_t attention_backward_scratch_numel(const AttentionSizes& sizes) {
  return sizes.sequences * sizes.heads * sizes.length;
}
template <class T>
cudaError_t launch_attention_backward(const AttentionGradient<T>& attention, cudaStream_t stream);

}  // namespace atl::cuda
