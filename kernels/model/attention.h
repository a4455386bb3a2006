// Causal attention whose queries share keys in groups, on one CPU thread: softmax(q k^T / sqrt(head_dim)) v and its
// gradient, as net/step/operation.h's Attention and AttentionBackward have them. Tiled as FlashAttention-2
// (arXiv:2307.08691): the scores of kAttentionQueries queries and kAttentionKeys keys are there at once, never all.
// Each document of a sequence is tiled from its own first row on, so that its values are those of a sequence of its
// own, and what lies before it costs nothing. Callers divide the work by sequence and head, and bring scratch; nothing
// is allocated here but what gemm.h says. Any thread.
//
// T is float or Bf16. Scores, their maxima and sums, and all sums over keys or queries are fp32; with Bf16,
// probabilities and the gradients of scores are rounded to Bf16 as operands of the products that follow, as GPUs do.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/model/gemm.h"

namespace atl {

// A row of qkv is `heads` queries, `key_value_heads` keys, `key_value_heads` values, of head_dim each; sequences of
// `length` rows follow each other. heads / key_value_heads neighbouring queries share a key and a value.
struct AttentionSizes {
  std::int64_t length = 0, heads = 0, key_value_heads = 0, head_dim = 0;
  constexpr std::int64_t columns() const { return heads * head_dim; }
  constexpr std::int64_t qkv_columns() const { return (heads + 2 * key_value_heads) * head_dim; }
};

template <class T>
struct AttentionPass {
  AttentionSizes sizes;
  const T* qkv = nullptr;      // [sequences * length, qkv_columns]
  T* out = nullptr;            // [sequences * length, columns]
  float* logsumexp = nullptr;  // [sequences * heads, length], of the scaled scores
  // [sequences * length], ascending within a sequence from 0: where in it each row's document begins, before which the
  // row sees nothing. None: a sequence is one document.
  const std::int32_t* starts = nullptr;
};
template <class T>
struct AttentionBackwardPass {
  AttentionSizes sizes;
  const T* dout = nullptr;  // as out
  const T* qkv = nullptr;
  const T* out = nullptr;
  const float* logsumexp = nullptr;
  T* dqkv = nullptr;                     // as qkv
  const std::int32_t* starts = nullptr;  // as of AttentionPass
};

// Writes out and logsumexp of one head of one sequence.
template <class T>
void attention_head(const AttentionPass<T>& pass, std::int64_t sequence, std::int64_t head, std::byte* scratch,
                    Sgemm sgemm, GemmKernel kernel = chosen_gemm_kernel());
// Writes dqkv of one sequence's key and value head and of the queries that share it, which are added up in ascending
// order of head, then row; the key_value_heads of all sequences together write all of dqkv.
template <class T>
void attention_backward_group(const AttentionBackwardPass<T>& pass, std::int64_t sequence, std::int64_t key_value_head,
                              std::byte* scratch, Sgemm sgemm, GemmKernel kernel = chosen_gemm_kernel());

inline constexpr std::int64_t kAttentionQueries = 64;
inline constexpr std::int64_t kAttentionKeys = 512;

// Of one thread, for either direction; `scratch` is aligned to 64 bytes. Grows with the length only by the gradients of
// one head's keys and values in fp32.
constexpr std::int64_t attention_scratch_bytes(const AttentionSizes& sizes) {
  const std::int64_t keys = sizes.length < kAttentionKeys ? (sizes.length + 15) / 16 * 16 : kAttentionKeys;
  const std::int64_t scores = kAttentionQueries * keys;  // two in fp32, two in T
  const std::int64_t of_queries = kAttentionQueries * (sizes.head_dim + 2);
  const std::int64_t of_keys = 2 * sizes.length * sizes.head_dim;
  return 4 * (4 * scores + (of_queries + of_keys + 15) / 16 * 16);
}

}  // namespace atl
