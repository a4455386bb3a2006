// Compiled with -mavx2 -mfma; called only where the processor has both.
namespace atl {
namespace {
constexpr int kLanes = 8;
}
}  // namespace atl
#include "kernels/model/attention_tiles.h"
#include "kernels/model/cached_attention_tiles.h"

namespace atl::avx2 {

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

}  // namespace atl::avx2
