#include "net/step/traits.h"

#include "kernels/model/attention.h"

namespace atl {
namespace {

std::int64_t cpu_attention_scratch(const AttentionShape& shape, DType, int threads) {
  const AttentionSizes sizes{shape.length, shape.heads, shape.key_value_heads, shape.head_dim};
  return threads * arena_aligned(attention_scratch_bytes(sizes));
}

// Of the backward pass: the sums of dout * out, in fp32, a row and head.
std::int64_t cuda_attention_scratch(const AttentionShape& shape, DType, int) {
  return 4 * shape.sequences * shape.heads * shape.length;
}

}  // namespace

StepTraits cpu_step_traits(int threads) {
  return {.kind = DeviceKind::kCpu, .attention_scratch = cpu_attention_scratch, .threads = threads};
}

StepTraits cuda_step_traits(GpuAttention, bool adds_by_scratch) {
  return {.kind = DeviceKind::kCuda,
          .attention_scratch = cuda_attention_scratch,
          .most_logits = std::int64_t{1} << 28,
          .reduce_scatter_scratch = adds_by_scratch,
          .overlaps = true};
}

}  // namespace atl
