// Compiled with -mavx512f -mavx512bw -mavx512dq -mavx512vl; called only where the processor has them all
// (kernels/instruction_set.h).
namespace atl {
namespace {
constexpr int kLanes = 16;
}
}  // namespace atl
#include "kernels/model/attention_tiles.h"
#include "kernels/model/cached_attention_tiles.h"

namespace atl::avx512 {

void attention_head(const AttentionPass<float>& pass, std::int64_t sequence, std::int64_t head, std::byte* scratch,
                    Sgemm sgemm, GemmKernel kernel) {
  head_forward(pass, sequence, head, scratch, {sgemm, kernel});
}
void attention_head(const AttentionPass<Bf16>& pass, std::int64_t sequence, std::int64_t head, std::byte* scratch,
                    Sgemm sgemm, GemmKernel kernel) {
  head_forward(pass, sequence, head, scratch, {sgemm, kernel});
}
void attention_backward_group(const AttentionBackwardPass<float>& pass, std::int64_t sequence,
                              std::int64_t key_value_head, std::byte* scratch, Sgemm sgemm, GemmKernel kernel) {
  group_backward(pass, sequence, key_value_head, scratch, {sgemm, kernel});
}
void attention_backward_group(const AttentionBackwardPass<Bf16>& pass, std::int64_t sequence,
                              std::int64_t key_value_head, std::byte* scratch, Sgemm sgemm, GemmKernel kernel) {
  group_backward(pass, sequence, key_value_head, scratch, {sgemm, kernel});
}
void cached_attention_group(const CachedAttentionPass<float>& pass, const CachedRun& run, std::int64_t key_value_head,
                            std::byte* scratch, Sgemm sgemm, GemmKernel kernel) {
  cached_group_forward(pass, run, key_value_head, scratch, {sgemm, kernel});
}
void cached_attention_group(const CachedAttentionPass<Bf16>& pass, const CachedRun& run, std::int64_t key_value_head,
                            std::byte* scratch, Sgemm sgemm, GemmKernel kernel) {
  cached_group_forward(pass, run, key_value_head, scratch, {sgemm, kernel});
}

}  // namespace atl::avx512
