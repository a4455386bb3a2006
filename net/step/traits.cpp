#include "net/step/traits.h"

#include "kernels/model/attention.h"
#include "kernels/model/cached_attention.h"
#include "kernels/model/cached_attention_split.h"

namespace atl {
namespace {

std::int64_t cpu_attention_scratch(const AttentionShape& shape, DType, int threads) {
  const AttentionSizes sizes{shape.length, shape.heads, shape.key_value_heads, shape.head_dim};
  return threads * arena_aligned(attention_scratch_bytes(sizes));
}

std::int64_t cpu_cached_attention_scratch(const CachedAttentionSizes& sizes, std::int64_t, int threads) {
  return threads * arena_aligned(cached_attention_scratch_bytes(sizes));
}

std::int64_t gpu_cached_attention_scratch(const CachedAttentionSizes& sizes, std::int64_t rows, int) {
  return 4 * cached_scratch_numel(rows, sizes.heads, sizes.key_value_heads, sizes.head_dim, sizes.capacity);
}

// Of the backward pass: the sums of dout * out, in fp32, a row and head.
std::int64_t own_attention_scratch(const AttentionShape& shape, DType, int) {
  return 4 * shape.sequences * shape.heads * shape.length;
}

// What cuDNN 9.19 asks for in the backward pass, on the GPUs where it asks for most (compute capability 8.0): 8 bytes
// an element of the queries, as one head's keys and values need 4 more where heads share them, and the sums of our own.
std::int64_t cudnn_attention_scratch(const AttentionShape& shape, DType dtype, int threads) {
  if (dtype != DType::kBfloat16) return own_attention_scratch(shape, dtype, threads);
  const std::int64_t each = shape.heads == shape.key_value_heads ? 8 : 12;
  constexpr std::int64_t kMore = 4096;  // its parts are aligned
  return each * shape.rows() * shape.heads * shape.head_dim + own_attention_scratch(shape, dtype, threads) + kMore;
}

}  // namespace

StepTraits cpu_step_traits(int threads) {
  return {.kind = DeviceKind::kCpu,
          .attention_scratch = cpu_attention_scratch,
          .cached_attention_scratch = cpu_cached_attention_scratch,
          .threads = threads};
}

StepTraits cuda_step_traits(GpuAttention attention, bool adds_by_scratch) {
  return {.kind = DeviceKind::kCuda,
          .attention_scratch = attention == GpuAttention::kCudnn ? cudnn_attention_scratch : own_attention_scratch,
          .cached_attention_scratch = gpu_cached_attention_scratch,
          .most_logits = std::int64_t{1} << 28,
          .reduce_scatter_scratch = adds_by_scratch,
          .overlaps = true};
}

}  // namespace atl
