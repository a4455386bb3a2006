#include "kernels/model/attention_cuda.h"
#include "kernels/model/attention_tiles_cuda.h"

namespace atl::cuda {
namespace {

// With P = exp(S - logsumexp), S the scaled scores, and D = the row sums of dO * O (arXiv:2307.08691, Alg. 2):
//   dV = P^T dO;  dP = dO V^T;  dS = P * (dP - D);  dQ = scale dS K;  dK = scale dS^T Q
// One kernel goes from keys to queries, for dK and dV, another from queries to keys, for dQ: seven products in place of
// five, but every sum is one thread's, in one order.
// D, a warp a row of a head.
template <class T>
__global__ __launch_bounds__(kTileThreads) void row_dots_kernel(const AttentionGradient<T> a) {
  const std::int64_t index = (static_cast<std::int64_t>(blockIdx.x) * kTileThreads + threadIdx.x) / kWarpLanes;
  if (index >= a.sizes.sequences * a.sizes.length * a.sizes.heads) return;
  const std::int64_t row = index / a.sizes.heads;
  const std::int64_t head = index % a.sizes.heads;
  const T* const dout = a.dout + row * a.dout_stride + head * a.sizes.head_dim;
  const T* const out = a.out + row * a.out_stride + head * a.sizes.head_dim;
  float sum = 0;
  for (std::int64_t i = threadIdx.x % kWarpLanes; i < a.sizes.head_dim; i += kWarpLanes) {
    sum += load<1>(dout + i)[0] * load<1>(out + i)[0];
  }
  sum = sum_of_warp(sum);
  if (threadIdx.x % kWarpLanes != 0) return;
  const std::int64_t sequence = row / a.sizes.length;
  a.scratch[(sequence * a.sizes.heads + head) * a.sizes.length + row % a.sizes.length] = sum;
}

// One head's operands, and what a block computes of them.
template <class T>
struct Head {
  HeadRows<const T> queries, keys, values, dout;
  const float* logsumexp;  // [length]
  const float* row_dots;
  DocumentStarts starts;
};

template <class T>
__device__ inline Head<T> head_of(const AttentionGradient<T>& a, bool vectors, std::int64_t sequence,
                                  std::int64_t head) {
  const AttentionSizes& sizes = a.sizes;
  const std::int64_t key_head = sizes.heads + head / (sizes.heads / sizes.key_value_heads);
  const std::int64_t first = (sequence * sizes.heads + head) * sizes.length;
  const auto rows_of = [&](std::int64_t of_head) {
    return head_rows(a.qkv, a.qkv_stride, vectors, sizes, sequence, of_head);
  };
  return {rows_of(head),
          rows_of(key_head),
          rows_of(key_head + sizes.key_value_heads),
          head_rows(a.dout, a.dout_stride, vectors, sizes, sequence, head),
          a.logsumexp + first,
          a.scratch + first,
          document_starts(a.starts, sizes, sequence)};
}

// P of 64 queries by 64 keys; 0 for later keys, those before a query's document, and for queries behind the end.
template <class T>
__device__ inline void probabilities(const Head<T>& head, int first_query, int first_key, float scale, Chunk& left,
                                     Chunk& right, Own& own) {
  multiply_rows(head.queries, first_query, head.keys, first_key, left, right, own);
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const int query = first_query + thread_y() * kOwn + i;
    const float logsumexp = query < head.queries.rows ? head.logsumexp[query] : INFINITY;
    const int start = head.starts[query];
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
      const int key = first_key + thread_x() + j * kSide;
      own[i][j] = key > query || key < start ? 0.0f : exp2f((own[i][j] * scale - logsumexp) * kLog2E);
    }
  }
}

// dS from P, in place.
template <class T>
__device__ inline void score_gradients(const Head<T>& head, int first_query, int first_key, Chunk& left, Chunk& right,
                                       Own& own) {
  Own dp = {};
  multiply_rows(head.dout, first_query, head.values, first_key, left, right, dp);
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const int query = first_query + thread_y() * kOwn + i;
    const float dot = query < head.queries.rows ? head.row_dots[query] : 0.0f;
#pragma unroll
    for (int j = 0; j < kOwn; ++j) own[i][j] *= dp[i][j] - dot;
  }
}

// A block has a tile of keys of one key head and goes through all queries of the heads that share it, in order, up to
// those whose documents begin behind its keys. The first tiles, which have the most queries, first.
template <class T, int kHalves>
__global__ __launch_bounds__(kTileThreads) void key_value_gradient_kernel(const AttentionGradient<T> a, unsigned groups,
                                                                          bool vectors) {
  __shared__ alignas(16) Chunk left;
  __shared__ alignas(16) Chunk right;
  __shared__ alignas(16) Tile weights;
  const AttentionSizes& sizes = a.sizes;
  const BlockPlace at = place_of_block<kHalves>(groups, static_cast<unsigned>(sizes.key_value_heads),
                                                static_cast<unsigned>(sizes.sequences));
  const int first_key = static_cast<int>(at.tile) * kTile;
  const float scale = 1.0f / sqrtf(static_cast<float>(sizes.head_dim));
  const std::int64_t sharing = sizes.heads / sizes.key_value_heads;
  Own dkeys[kHalves] = {};
  Own dvalues[kHalves] = {};
  for (std::int64_t shared = 0; shared < sharing; ++shared) {
    const Head<T> head = head_of(a, vectors, at.sequence, at.head * sharing + shared);
    for (int first_query = first_key; first_query < head.queries.rows && head.starts[first_query] < first_key + kTile;
         first_query += kTile) {
      Own scores = {};
      probabilities(head, first_query, first_key, scale, left, right, scores);
      store_scores(scores, weights);
      multiply_weights<true>(weights, head.dout, first_query, at.first_column, right, dvalues);
      score_gradients(head, first_query, first_key, left, right, scores);
      store_scores(scores, weights);
      multiply_weights<true>(weights, head.queries, first_query, at.first_column, right, dkeys);
    }
  }
  const std::int64_t key_head = sizes.heads + at.head;
  const auto to = [&](std::int64_t head) {
    return head_rows(a.dqkv, a.dqkv_stride, vectors, sizes, at.sequence, head);
  };
#pragma unroll
  for (int h = 0; h < kHalves; ++h) {
    const int column = at.first_column + h * kTile;
    store_tile(dkeys[h], to(key_head), first_key, column, [&](int) { return scale; });
    store_tile(dvalues[h], to(key_head + sizes.key_value_heads), first_key, column, [](int) { return 1.0f; });
  }
}

// A block has a tile of queries; the last tiles, which have the most keys, first.
template <class T, int kHalves>
__global__ __launch_bounds__(kTileThreads) void query_gradient_kernel(const AttentionGradient<T> a, unsigned groups,
                                                                      bool vectors) {
  __shared__ alignas(16) Chunk left;
  __shared__ alignas(16) Chunk right;
  __shared__ alignas(16) Tile weights;
  const AttentionSizes& sizes = a.sizes;
  const BlockPlace at =
      place_of_block<kHalves>(groups, static_cast<unsigned>(sizes.heads), static_cast<unsigned>(sizes.sequences));
  const Head<T> head = head_of(a, vectors, at.sequence, at.head);
  const int tiles = (head.queries.rows + kTile - 1) / kTile;
  const int first_query = (tiles - 1 - static_cast<int>(at.tile)) * kTile;
  const float scale = 1.0f / sqrtf(static_cast<float>(sizes.head_dim));
  Own dqueries[kHalves] = {};
  for (int first_key = head.starts.first_tile(first_query); first_key <= first_query; first_key += kTile) {
    Own scores = {};
    probabilities(head, first_query, first_key, scale, left, right, scores);
    score_gradients(head, first_query, first_key, left, right, scores);
    store_scores(scores, weights);
    multiply_weights<false>(weights, head.keys, first_key, at.first_column, right, dqueries);
  }
  const HeadRows<T> to = head_rows(a.dqkv, a.dqkv_stride, vectors, sizes, at.sequence, at.head);
#pragma unroll
  for (int h = 0; h < kHalves; ++h) {
    store_tile(dqueries[h], to, first_query, at.first_column + h * kTile, [&](int) { return scale; });
  }
}

}  // namespace

template <class T>
cudaError_t launch_attention_backward(const AttentionGradient<T>& attention, cudaStream_t stream) {
  const AttentionSizes& sizes = attention.sizes;
  const std::int64_t dots = divided_upwards(attention_backward_scratch_numel(sizes), kTileThreads / kWarpLanes);
  if (!takes(sizes) || dots > kMostGroups) return cudaErrorInvalidValue;
  if (sizes.sequences == 0 || sizes.length == 0 || sizes.heads == 0) return cudaSuccess;
  const ColumnGroups columns = column_groups(sizes.head_dim);
  const auto groups = static_cast<unsigned>(columns.groups);
  const bool vectors =
      in_vectors<Bf16>({sizes.head_dim, attention.qkv_stride, attention.dout_stride, attention.dqkv_stride},
                       {attention.qkv, attention.dout, attention.dqkv});
  const std::int64_t tiles = divided_upwards(sizes.length, kTile) * sizes.sequences * columns.groups;

  const auto dots_groups = static_cast<unsigned>(dots);
  const auto dots_kernel = row_dots_kernel<T>;
  dots_kernel<<<dots_groups, kTileThreads, 0, stream>>>(attention);
  cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) return error;

  const auto key_groups = static_cast<unsigned>(tiles * sizes.key_value_heads);
  const auto key_kernel = columns.halves == 1 ? key_value_gradient_kernel<T, 1> : key_value_gradient_kernel<T, 2>;
  key_kernel<<<key_groups, kTileThreads, 0, stream>>>(attention, groups, vectors);
  error = cudaGetLastError();
  if (error != cudaSuccess) return error;

  const auto query_groups = static_cast<unsigned>(tiles * sizes.heads);
  const auto query_kernel = columns.halves == 1 ? query_gradient_kernel<T, 1> : query_gradient_kernel<T, 2>;
  query_kernel<<<query_groups, kTileThreads, 0, stream>>>(attention, groups, vectors);
  return cudaGetLastError();
}

template cudaError_t launch_attention_backward(const AttentionGradient<float>&, cudaStream_t);
template cudaError_t launch_attention_backward(const AttentionGradient<Bf16>&, cudaStream_t);

}  // namespace atl::cuda
