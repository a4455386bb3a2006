#include "kernels/model/attention.h"

#include "kernels/model/attention_sets.h"

namespace atl {

template <class T>
void attention_head(const AttentionPass<T>& pass, std::int64_t sequence, std::int64_t head, std::byte* scratch,
                    Sgemm sgemm, GemmKernel kernel) {
#if defined(__x86_64__)
  if (kernel >= GemmKernel::kAvx512) return avx512::attention_head(pass, sequence, head, scratch, sgemm, kernel);
  if (kernel == GemmKernel::kAvx2) return avx2::attention_head(pass, sequence, head, scratch, sgemm, kernel);
#endif
  plain::attention_head(pass, sequence, head, scratch, sgemm, kernel);
}

template <class T>
void attention_backward_group(const AttentionBackwardPass<T>& pass, std::int64_t sequence, std::int64_t key_value_head,
                              std::byte* scratch, Sgemm sgemm, GemmKernel kernel) {
#if defined(__x86_64__)
  if (kernel >= GemmKernel::kAvx512) {
    return avx512::attention_backward_group(pass, sequence, key_value_head, scratch, sgemm, kernel);
  }
  if (kernel == GemmKernel::kAvx2) {
    return avx2::attention_backward_group(pass, sequence, key_value_head, scratch, sgemm, kernel);
  }
#endif
  plain::attention_backward_group(pass, sequence, key_value_head, scratch, sgemm, kernel);
}

template <class T>
void cached_attention_group(const CachedAttentionPass<T>& pass, const CachedRun& run, std::int64_t key_value_head,
                            std::byte* scratch, Sgemm sgemm, GemmKernel kernel) {
#if defined(__x86_64__)
  if (kernel >= GemmKernel::kAvx512) {
    return avx512::cached_attention_group(pass, run, key_value_head, scratch, sgemm, kernel);
  }
  if (kernel == GemmKernel::kAvx2) {
    return avx2::cached_attention_group(pass, run, key_value_head, scratch, sgemm, kernel);
  }
#endif
  plain::cached_attention_group(pass, run, key_value_head, scratch, sgemm, kernel);
}

template void attention_head(const AttentionPass<float>&, std::int64_t, std::int64_t, std::byte*, Sgemm, GemmKernel);
template void attention_head(const AttentionPass<Bf16>&, std::int64_t, std::int64_t, std::byte*, Sgemm, GemmKernel);
template void attention_backward_group(const AttentionBackwardPass<float>&, std::int64_t, std::int64_t, std::byte*,
                                       Sgemm, GemmKernel);
template void attention_backward_group(const AttentionBackwardPass<Bf16>&, std::int64_t, std::int64_t, std::byte*,
                                       Sgemm, GemmKernel);
template void cached_attention_group(const CachedAttentionPass<float>&, const CachedRun&, std::int64_t, std::byte*,
                                     Sgemm, GemmKernel);
template void cached_attention_group(const CachedAttentionPass<Bf16>&, const CachedRun&, std::int64_t, std::byte*,
                                     Sgemm, GemmKernel);

}  // namespace atl
