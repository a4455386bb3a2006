#include "kernels/model/attention_cuda.h"
#include "kernels/model/attention_tiles_cuda.h"

namespace atl::cuda {
namespace {

// Online softmax of a tile's scores, which come scaled by log2(e) too. `top`, `sum`: of each of the thread's rows, over
// the keys so far; sum over the thread's own columns alone. shrink: what the sums so far count for from now on.
__device__ inline void soften(Own& scores, float (&top)[kOwn], float (&sum)[kOwn], float (&shrink)[kOwn]) {
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    float largest = top[i];
#pragma unroll
    for (int j = 0; j < kOwn; ++j) largest = fmaxf(largest, scores[i][j]);
#pragma unroll
    for (int half = kSide / 2; half > 0; half /= 2) {
      largest = fmaxf(largest, __shfl_xor_sync(kWholeWarp, largest, half));
    }
    // Of a row whose document begins behind these keys all scores are -infinity, from which nothing is subtracted.
    const float base = largest == -INFINITY ? 0.0f : largest;
    shrink[i] = exp2f(top[i] - base);
    top[i] = largest;
    sum[i] *= shrink[i];
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
      scores[i][j] = exp2f(scores[i][j] - base);
      sum[i] += scores[i][j];
    }
  }
}

// Scores, scaled by log2(e) too; none for keys after the query, or before its document.
__device__ inline void scale_and_mask(int first_query, int first_key, const DocumentStarts& starts, float scale,
                                      Own& scores) {
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const int query = first_query + thread_y() * kOwn + i;
    const int start = starts[query];
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
      const int key = first_key + thread_x() + j * kSide;
      scores[i][j] = key > query || key < start ? -INFINITY : scores[i][j] * scale;
    }
  }
}

template <int kHalves>
__device__ inline void shrink_rows(const float (&shrink)[kOwn], Own (&out)[kHalves]) {
#pragma unroll
  for (int h = 0; h < kHalves; ++h) {
#pragma unroll
    for (int i = 0; i < kOwn; ++i) {
#pragma unroll
      for (int j = 0; j < kOwn; ++j) out[h][i][j] *= shrink[i];
    }
  }
}

// Adds the sums of the 16 threads of a row.
__device__ inline void add_over_row(float (&sum)[kOwn]) {
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
#pragma unroll
    for (int half = kSide / 2; half > 0; half /= 2) sum[i] += __shfl_xor_sync(kWholeWarp, sum[i], half);
  }
}

// A block has a tile of queries of one head, and up to kHalves tiles of the head's columns; the last tiles, which have
// the most keys, first.
template <class T, int kHalves>
__global__ __launch_bounds__(kTileThreads, 2) void attention_kernel(const AttentionForward<T> a, unsigned groups,
                                                                    bool vectors) {
  __shared__ alignas(16) Chunk left;
  __shared__ alignas(16) Chunk right;
  __shared__ alignas(16) Tile weights;
  const AttentionSizes& sizes = a.sizes;
  const BlockPlace at =
      place_of_block<kHalves>(groups, static_cast<unsigned>(sizes.heads), static_cast<unsigned>(sizes.sequences));
  const int tiles = (static_cast<int>(sizes.length) + kTile - 1) / kTile;
  const int first_query = (tiles - 1 - static_cast<int>(at.tile)) * kTile;
  const std::int64_t key_head = sizes.heads + at.head / (sizes.heads / sizes.key_value_heads);
  const auto rows_of = [&](std::int64_t head) {
    return head_rows(a.qkv, a.qkv_stride, vectors, sizes, at.sequence, head);
  };
  const HeadRows<const T> queries = rows_of(at.head);
  const HeadRows<const T> keys = rows_of(key_head);
  const HeadRows<const T> values = rows_of(key_head + sizes.key_value_heads);
  const float scale = kLog2E / sqrtf(static_cast<float>(sizes.head_dim));

  Own out[kHalves] = {};
  float top[kOwn] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
  float sum[kOwn] = {};
  const DocumentStarts starts = document_starts(a.starts, sizes, at.sequence);
  for (int first_key = starts.first_tile(first_query); first_key <= first_query; first_key += kTile) {
    Own scores = {};
    multiply_rows(queries, first_query, keys, first_key, left, right, scores);
    scale_and_mask(first_query, first_key, starts, scale, scores);
    float shrink[kOwn];
    soften(scores, top, sum, shrink);
    // All are past the barriers of multiply_rows, and so past the last reading of the weights.
    store_scores(scores, weights);
    shrink_rows(shrink, out);
    multiply_weights<false>(weights, values, first_key, at.first_column, right, out);
  }

  add_over_row(sum);
#pragma unroll
  for (int i = 0; i < kOwn; ++i) {
    const int query = first_query + thread_y() * kOwn + i;
    if (at.first_column == 0 && thread_x() == 0 && query < sizes.length) {
      a.logsumexp[(at.sequence * sizes.heads + at.head) * sizes.length + query] = (top[i] + log2f(sum[i])) * kLn2;
    }
  }
  const HeadRows<T> to = head_rows(a.out, a.out_stride, vectors, sizes, at.sequence, at.head);
#pragma unroll
  for (int h = 0; h < kHalves; ++h) {
    store_tile(out[h], to, first_query, at.first_column + h * kTile, [&](int i) { return 1.0f / sum[i]; });
  }
}

}  // namespace

template <class T>
cudaError_t launch_attention(const AttentionForward<T>& attention, cudaStream_t stream) {
  const AttentionSizes& sizes = attention.sizes;
  if (!takes(sizes)) return cudaErrorInvalidValue;
  if (sizes.sequences == 0 || sizes.length == 0 || sizes.heads == 0) return cudaSuccess;
  const ColumnGroups columns = column_groups(sizes.head_dim);
  const bool vectors =
      in_vectors<Bf16>({sizes.head_dim, attention.qkv_stride, attention.out_stride}, {attention.qkv, attention.out});
  const auto column_groups_of_head = static_cast<unsigned>(columns.groups);
  const auto groups =
      static_cast<unsigned>(divided_upwards(sizes.length, kTile) * sizes.sequences * sizes.heads * columns.groups);
  const auto kernel = columns.halves == 1 ? attention_kernel<T, 1> : attention_kernel<T, 2>;
  kernel<<<groups, kTileThreads, 0, stream>>>(attention, column_groups_of_head, vectors);
  return cudaGetLastError();
}

template cudaError_t launch_attention(const AttentionForward<float>&, cudaStream_t);
template cudaError_t launch_attention(const AttentionForward<Bf16>&, cudaStream_t);

}  // namespace atl::cuda
