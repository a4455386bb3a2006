#include "kernels/model/gemm.h"

#include <cstdlib>
#include <memory>
#include <new>

#include "kernels/model/gemm_blocks.h"

namespace atl {
namespace {

struct Free {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};

template <class Out>
void multiply_by(const Gemm<Bf16, Out>& gemm, GemmKernel kernel) {
#if defined(__x86_64__)
  if (kernel == GemmKernel::kAvx512Bf16) return avx512bf16::multiply(gemm);
  if (kernel == GemmKernel::kAvx512) return avx512::multiply(gemm);
  if (kernel == GemmKernel::kAvx2) return avx2::multiply(gemm);
#endif
  static_cast<void>(kernel);
  plain::multiply(gemm);
}

}  // namespace

bool processor_has(GemmKernel kernel) {
#if defined(__x86_64__)
  if (kernel == GemmKernel::kAvx2) return processor_has(InstructionSet::kAvx2) && __builtin_cpu_supports("fma");
  if (kernel == GemmKernel::kAvx512) return processor_has(InstructionSet::kAvx512);
  if (kernel == GemmKernel::kAvx512Bf16) {
    return processor_has(InstructionSet::kAvx512) && __builtin_cpu_supports("avx512bf16");
  }
#endif
  return kernel == GemmKernel::kPlain;
}

GemmKernel best_gemm_kernel(InstructionSet allowed) {
  GemmKernel best = GemmKernel::kPlain;
  if (allowed >= InstructionSet::kAvx2 && processor_has(GemmKernel::kAvx2)) best = GemmKernel::kAvx2;
  if (allowed < InstructionSet::kAvx512) return best;
  if (processor_has(GemmKernel::kAvx512)) best = GemmKernel::kAvx512;
  if (processor_has(GemmKernel::kAvx512Bf16)) best = GemmKernel::kAvx512Bf16;
  return best;
}

GemmKernel chosen_gemm_kernel() {
  static const GemmKernel chosen = best_gemm_kernel(chosen_instruction_set());
  return chosen;
}

GemmBuffers gemm_buffers() {
  thread_local const std::unique_ptr<std::byte, Free> bytes(
      static_cast<std::byte*>(std::aligned_alloc(64, kGemmBufferBytes)));
  if (bytes == nullptr) throw std::bad_alloc();
  std::byte* const a = bytes.get() + kGemmBlockBytes;
  return {.b = bytes.get(), .a = a, .sums = reinterpret_cast<float*>(a + kGemmRowBytes)};
}

void multiply(const Gemm<Bf16, Bf16>& gemm, GemmKernel kernel) { multiply_by(gemm, kernel); }
void multiply(const Gemm<Bf16, float>& gemm, GemmKernel kernel) { multiply_by(gemm, kernel); }

void multiply(const Gemm<float, float>& gemm, Sgemm sgemm) {
  if (gemm.m <= 0 || gemm.n <= 0) return;
  if (gemm.add != nullptr && (gemm.accumulate || gemm.add != gemm.c)) {
    for (std::int64_t i = 0; i < gemm.m; ++i) {
      const float* const add = gemm.add + i * gemm.ld_add;
      float* const c = gemm.c + i * gemm.ldc;
      for (std::int64_t j = 0; j < gemm.n; ++j) c[j] = gemm.accumulate ? c[j] + add[j] : add[j];
    }
  }
  const float beta = gemm.accumulate || gemm.add != nullptr ? 1.0f : 0.0f;
  sgemm(gemm.transpose_a, gemm.transpose_b, gemm.m, gemm.n, gemm.k, gemm.a, gemm.lda, gemm.b, gemm.ldb, beta, gemm.c,
        gemm.ldc);
}

void reference_sgemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                     std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc) {
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::int64_t p = 0; p < k; ++p) {
        sum += (transpose_a ? a[p * lda + i] : a[i * lda + p]) * (transpose_b ? b[j * ldb + p] : b[p * ldb + j]);
      }
      c[i * ldc + j] = beta == 0 ? sum : sum + beta * c[i * ldc + j];
    }
  }
}

}  // namespace atl
