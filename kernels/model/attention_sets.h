// The functions of attention.h by instruction set; attention.cpp chooses among them. Internal to these files.
#pragma once

#include "kernels/model/attention.h"
#include "kernels/model/cached_attention.h"

namespace atl {

#define ATOLL_ATTENTION_OF(instructions)                                                                            \
  namespace instructions {                                                                                          \
  void attention_head(const AttentionPass<float>&, std::int64_t, std::int64_t, std::byte*, Sgemm, GemmKernel);      \
  void attention_head(const AttentionPass<Bf16>&, std::int64_t, std::int64_t, std::byte*, Sgemm, GemmKernel);       \
  void attention_backward_group(const AttentionBackwardPass<float>&, std::int64_t, std::int64_t, std::byte*, Sgemm, \
                                GemmKernel);                                                                        \
  void attention_backward_group(const AttentionBackwardPass<Bf16>&, std::int64_t, std::int64_t, std::byte*, Sgemm,  \
                                GemmKernel);                                                                        \
  void cached_attention_group(const CachedAttentionPass<float>&, const CachedRun&, std::int64_t, std::byte*, Sgemm, \
                              GemmKernel);                                                                          \
  void cached_attention_group(const CachedAttentionPass<Bf16>&, const CachedRun&, std::int64_t, std::byte*, Sgemm,  \
                              GemmKernel);                                                                          \
  }
ATOLL_ATTENTION_OF(plain)
ATOLL_ATTENTION_OF(avx2)
ATOLL_ATTENTION_OF(avx512)
#undef ATOLL_ATTENTION_OF

}  // namespace atl
