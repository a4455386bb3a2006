#include <cmath>

#include "kernels/model/cached_attention_cuda.h"
#include "kernels/model/cached_attention_split.h"
#include "kernels/model/device_cuda.h"

namespace atl::cuda {
namespace {

constexpr int kWriters = 256;
constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarpLanes;
constexpr int kAtOnce = static_cast<int>(kCachedHeadsAtOnce);
constexpr float kLog2E = 1.4426950408889634f;

// A block a row. Before anybody attends, as rows of one pass see each other.
template <class T, int kWidth>
__global__ __launch_bounds__(kWriters) void write_kernel(const CachedAttentionRows<T> a) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t slot = a.slot_of[row];
  if (slot < 0) return;
  const auto columns = static_cast<unsigned>(a.key_value_heads * a.head_dim);
  const auto head_dim = static_cast<unsigned>(a.head_dim);
  const T* const of_row = a.qkv + (row * (a.heads + 2 * a.key_value_heads) + a.heads) * a.head_dim;
  const std::int64_t first = slot * a.key_value_heads * a.capacity + a.position_of[row];
  for (unsigned i = threadIdx.x * kWidth; i < columns; i += kWriters * kWidth) {
    const std::int64_t place = (first + i / head_dim * a.capacity) * a.head_dim + i % head_dim;
    float pieces[kWidth];
    const Values<T, kWidth> key = load<kWidth>(of_row + i);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) pieces[k] = key[k];
    store<kWidth>(a.keys + place, pieces);
    const Values<T, kWidth> value = load<kWidth>(of_row + columns + i);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) pieces[k] = value[k];
    store<kWidth>(a.values + place, pieces);
  }
}

// How a pass is divided, and where parts go.
struct Division {
  unsigned splits;  // of a row's keys
  unsigned chunks;  // of the heads that share a key
};

// Which keys a part of a row has: none where the row has not so many.
struct Range {
  std::int64_t first, last;
};
__device__ inline Range range_of(std::int64_t keys, unsigned split, unsigned splits) {
  const std::int64_t tiles = (keys + kCachedSplitKeys - 1) / kCachedSplitKeys;
  const std::int64_t each = (tiles + splits - 1) / splits * kCachedSplitKeys;
  const std::int64_t first = split * each;
  const std::int64_t last = first + each < keys ? first + each : keys;
  return {first < last ? first : last, last};
}

// The scratch of one row, head and part.
template <class T>
__device__ inline float* part_of(const CachedAttentionRows<T>& a, const Division& d, std::int64_t row,
                                 std::int64_t head, unsigned split) {
  return a.scratch + ((row * a.heads + head) * d.splits + split) * (a.head_dim + 2);
}

// exp2(x - largest), where both may be -infinity.
__device__ inline float weight_of(float x, float largest) { return largest == -INFINITY ? 0.0f : exp2f(x - largest); }

// A block has a row, up to kHeads heads that share a key, and a part of its keys. kLanes lanes have a key, each kParts
// pieces of kWidth of its values; each of these groups goes over keys of its own with an online softmax (scores scaled
// by log2(e), too), and at the end they are added up, warps in their order.
template <class T, int kWidth, int kLanes, int kParts, int kHeads>
__global__ __launch_bounds__(kThreads) void attend_kernel(const CachedAttentionRows<T> a, const Division d) {
  constexpr int kKeys = kWarpLanes / kLanes;  // of a warp at once
  constexpr int kOwn = kParts * kWidth;
  constexpr int kUnroll = kParts == 1 ? 4 : kParts == 2 ? 2 : 1;  // keys that are read before they are used
  __shared__ float shared_top[kWarps][kHeads];
  __shared__ float shared_sum[kWarps][kHeads];
  __shared__ float shared_out[kWarps][kHeads][kLanes * kOwn];
  const std::int64_t row = blockIdx.x % a.rows;
  const auto rest = static_cast<unsigned>(blockIdx.x / a.rows);
  const unsigned split = rest % d.splits;
  const unsigned chunk = rest / d.splits % d.chunks;
  const std::int64_t key_head = rest / d.splits / d.chunks;
  const std::int64_t shared_by = a.heads / a.key_value_heads;
  const std::int64_t first_head = key_head * shared_by + static_cast<std::int64_t>(chunk) * kHeads;
  const std::int64_t left = shared_by - static_cast<std::int64_t>(chunk) * kHeads;
  const int heads = left < kHeads ? static_cast<int>(left) : kHeads;
  const int warp = static_cast<int>(threadIdx.x) / kWarpLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int group = static_cast<int>(threadIdx.x) % kWarpLanes / kLanes;
  const auto head_dim = static_cast<int>(a.head_dim);
  const std::int64_t slot = a.slot_of[row];
  const Range range = slot < 0 ? Range{0, 0} : range_of(a.position_of[row] + std::int64_t{1}, split, d.splits);

  float query[kHeads][kOwn];
  float out[kHeads][kOwn];
  float top[kHeads];
  float sum[kHeads];
  const float scale = kLog2E / sqrtf(static_cast<float>(head_dim));
  const T* const queries = a.qkv + (row * (a.heads + 2 * a.key_value_heads) + first_head) * a.head_dim;
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    top[h] = -INFINITY;
    sum[h] = 0.0f;
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
      const int column = (p * kLanes + lane) * kWidth;
      const bool there = h < heads && column < head_dim;
      const Values<T, kWidth> x = load<kWidth>(queries + (there ? h * head_dim + column : 0));
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        query[h][p * kWidth + k] = there ? x[k] * scale : 0.0f;
        out[h][p * kWidth + k] = 0.0f;
      }
    }
  }

  const std::int64_t block = slot < 0 ? 0 : (slot * a.key_value_heads + key_head) * a.capacity * a.head_dim;
  const T* const keys = a.keys + block;
  const T* const values = a.values + block;
  for (std::int64_t base = range.first; base < range.last; base += kWarps * kKeys * kUnroll) {
    Values<T, kWidth> key[kUnroll][kParts];
    Values<T, kWidth> value[kUnroll][kParts];
    bool there[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const std::int64_t wanted = base + (u * kWarps + warp) * kKeys + group;
      there[u] = wanted < range.last;
      const std::int64_t place = (there[u] ? wanted : range.last - 1) * head_dim;
#pragma unroll
      for (int p = 0; p < kParts; ++p) {
        // A lane behind the head's end reads its beginning; its queries are 0, and its sums are not asked for.
        const int column = (p * kLanes + lane) * kWidth;
        const std::int64_t at = place + (column < head_dim ? column : 0);
        key[u][p] = load<kWidth>(keys + at);
        value[u][p] = load<kWidth>(values + at);
      }
    }
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      if (h >= heads) continue;
      float score[kUnroll];
      float largest = top[h];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        float dot = 0.0f;
#pragma unroll
        for (int p = 0; p < kParts; ++p) {
#pragma unroll
          for (int k = 0; k < kWidth; ++k) dot += query[h][p * kWidth + k] * key[u][p][k];
        }
#pragma unroll
        for (int half = kLanes / 2; half > 0; half /= 2) dot += __shfl_xor_sync(kWholeWarp, dot, half);
        score[u] = there[u] ? dot : -INFINITY;
        largest = fmaxf(largest, score[u]);
      }
      const float shrink = weight_of(top[h], largest);
      top[h] = largest;
      sum[h] *= shrink;
#pragma unroll
      for (int i = 0; i < kOwn; ++i) out[h][i] *= shrink;
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const float weight = weight_of(score[u], largest);
        sum[h] += weight;
#pragma unroll
        for (int p = 0; p < kParts; ++p) {
#pragma unroll
          for (int k = 0; k < kWidth; ++k) out[h][p * kWidth + k] += weight * value[u][p][k];
        }
      }
    }
  }

#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
#pragma unroll
    for (int apart = kLanes; apart < kWarpLanes; apart *= 2) {  // the warp's groups
      const float other = __shfl_xor_sync(kWholeWarp, top[h], apart);
      const float largest = fmaxf(top[h], other);
      const float mine = weight_of(top[h], largest);
      const float theirs = weight_of(other, largest);
      top[h] = largest;
      sum[h] = sum[h] * mine + __shfl_xor_sync(kWholeWarp, sum[h], apart) * theirs;
#pragma unroll
      for (int i = 0; i < kOwn; ++i)
        out[h][i] = out[h][i] * mine + __shfl_xor_sync(kWholeWarp, out[h][i], apart) * theirs;
    }
    if (group != 0) continue;
    if (lane == 0) {
      shared_top[warp][h] = top[h];
      shared_sum[warp][h] = sum[h];
    }
#pragma unroll
    for (int p = 0; p < kParts; ++p) {
#pragma unroll
      for (int k = 0; k < kWidth; ++k) shared_out[warp][h][(p * kLanes + lane) * kWidth + k] = out[h][p * kWidth + k];
    }
  }
  __syncthreads();

  for (int i = static_cast<int>(threadIdx.x); i < heads * head_dim; i += kThreads) {
    const int h = i / head_dim;
    const int column = i % head_dim;
    float largest = -INFINITY;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) largest = fmaxf(largest, shared_top[w][h]);
    float all = 0.0f;
    float weights = 0.0f;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      const float weight = weight_of(shared_top[w][h], largest);
      all += shared_out[w][h][column] * weight;
      weights += shared_sum[w][h] * weight;
    }
    if (d.splits == 1) {
      const float result[1] = {slot < 0 ? 0.0f : all / weights};
      store<1>(a.out + (row * a.heads + first_head) * head_dim + i, result);
      continue;
    }
    float* const part = part_of(a, d, row, first_head + h, split);
    part[column] = all;
    if (column != 0) continue;
    part[head_dim] = largest;
    part[head_dim + 1] = weights;
  }
}

// A block a row and head: the parts of its keys, in their order.
template <class T>
__global__ __launch_bounds__(kThreads) void add_parts_kernel(const CachedAttentionRows<T> a, const Division d) {
  const std::int64_t row = blockIdx.x / a.heads;
  const std::int64_t head = blockIdx.x % a.heads;
  const auto head_dim = static_cast<unsigned>(a.head_dim);
  const bool there = a.slot_of[row] >= 0;
  float largest = -INFINITY;
  for (unsigned s = 0; there && s < d.splits; ++s) largest = fmaxf(largest, part_of(a, d, row, head, s)[head_dim]);
  for (unsigned column = threadIdx.x; column < head_dim; column += kThreads) {
    float all = 0.0f;
    float weights = 0.0f;
    for (unsigned s = 0; there && s < d.splits; ++s) {
      const float* const part = part_of(a, d, row, head, s);
      const float weight = weight_of(part[head_dim], largest);
      all += part[column] * weight;
      weights += part[head_dim + 1] * weight;
    }
    const float result[1] = {there ? all / weights : 0.0f};
    store<1>(a.out + (row * a.heads + head) * head_dim + column, result);
  }
}

template <class T, int kWidth, int kLanes, int kParts>
void attend(const CachedAttentionRows<T>& a, const Division& d, cudaStream_t stream) {
  const bool one = a.heads == a.key_value_heads;
  const auto kernel =
      one ? attend_kernel<T, kWidth, kLanes, kParts, 1> : attend_kernel<T, kWidth, kLanes, kParts, kAtOnce>;
  const auto groups = static_cast<unsigned>(a.rows * a.key_value_heads * d.chunks * d.splits);
  kernel<<<groups, kThreads, 0, stream>>>(a, d);
}

// As few lanes a key as hold a head.
template <class T>
void attend_in_vectors(const CachedAttentionRows<T>& a, const Division& d, cudaStream_t stream) {
  constexpr int kWidth = kVector<T>;
  if (a.head_dim <= 8 * kWidth) return attend<T, kWidth, 8, 1>(a, d, stream);
  if (a.head_dim <= 16 * kWidth) return attend<T, kWidth, 16, 1>(a, d, stream);
  if (a.head_dim <= 32 * kWidth) return attend<T, kWidth, 32, 1>(a, d, stream);
  if (a.head_dim <= 64 * kWidth) return attend<T, kWidth, 32, 2>(a, d, stream);
  if constexpr (kWidth == 4) attend<T, kWidth, 32, 4>(a, d, stream);
}

}  // namespace

template <class T>
cudaError_t launch_cached_attention(const CachedAttentionRows<T>& attention, cudaStream_t stream) {
  const CachedAttentionRows<T> a = attention;
  if (a.rows == 0 || a.heads == 0) return cudaSuccess;
  if (a.head_dim < 1 || a.head_dim > kMostCachedHeadDim || a.key_value_heads < 1 || a.capacity < 1 ||
      a.heads % a.key_value_heads != 0) {
    return cudaErrorInvalidValue;
  }
  const std::int64_t undivided = cached_groups(a.rows, a.heads, a.key_value_heads);
  if (undivided > kMostGroups || a.rows * a.heads > kMostGroups) return cudaErrorInvalidValue;
  const Division d{static_cast<unsigned>(cached_splits(undivided, a.capacity)),
                   static_cast<unsigned>(undivided / a.rows / a.key_value_heads)};
  const bool wide = in_vectors<T>({a.head_dim}, {a.qkv, a.keys, a.values});
  const auto rows = static_cast<unsigned>(a.rows);
  const auto write = wide ? write_kernel<T, kVector<T>> : write_kernel<T, 1>;
  write<<<rows, kWriters, 0, stream>>>(a);
  cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) return error;
  if (wide) {
    attend_in_vectors(a, d, stream);
  } else if (a.head_dim <= 4 * kWarpLanes) {
    attend<T, 1, kWarpLanes, 4>(a, d, stream);
  } else {
    attend<T, 1, kWarpLanes, 16>(a, d, stream);
  }
  error = cudaGetLastError();
  if (error != cudaSuccess || d.splits == 1) return error;
  const auto parts = static_cast<unsigned>(a.rows * a.heads);
  const auto add = add_parts_kernel<T>;
  add<<<parts, kThreads, 0, stream>>>(a, d);
  return cudaGetLastError();
}

template cudaError_t launch_cached_attention(const CachedAttentionRows<float>&, cudaStream_t);
template cudaError_t launch_cached_attention(const CachedAttentionRows<Bf16>&, cudaStream_t);

}  // namespace atl::cuda
