// Matrix products on one CPU thread, the calling one: c = op(a) op(b) (+ add) (+ c), op(x) being x or its transpose.
// Callers divide the work among threads by rows or columns of c. Standard library only. Any thread; each keeps packing
// buffers of its own of kGemmBufferBytes, allocated at its first product and freed when it ends.
//
// Sums are fp32 and rounded once, to nearest even, where c is written. Their order depends on k and on the instructions
// chosen, not on m, n or the other rows and columns, so that work may be divided in any way.
//
// fp32 matrices are multiplied by an Sgemm that the caller has from a library. Bf16 ones are multiplied here: by
// AVX512-BF16 where the processor has it, else widened to fp32. AVX512-BF16 (vdpbf16ps, Intel SDM) adds the two
// products of a pair of k one after the other and takes denormals, read or written, as zeros: results differ from the
// widened ones by the order of the sums, and below 2^-126.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/model/model_kernels.h"

namespace atl {

// Matrices are row-major, ld* elements from row to row. c overlaps neither a nor b; `add` may be c.
template <class T, class Out>
struct Gemm {
  bool transpose_a = false;  // a is [k, m] in place of [m, k]
  bool transpose_b = false;  // b is [n, k] in place of [k, n]
  std::int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;
  std::int64_t lda = 0;
  const T* b = nullptr;
  std::int64_t ldb = 0;
  Out* c = nullptr;
  std::int64_t ldc = 0;
  const Out* add = nullptr;  // [m, n], or none
  std::int64_t ld_add = 0;
  bool accumulate = false;  // c +=
};

// c = op(a) op(b) + beta c, row-major; c is not read where beta is 0.
using Sgemm = void (*)(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
                       const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c,
                       std::int64_t ldc);
// Three plain loops, for tests and where there is no library.
void reference_sgemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                     std::int64_t lda, const float* b, std::int64_t ldb, float beta, float* c, std::int64_t ldc);

// What Bf16 is multiplied by.
enum class GemmKernel { kPlain, kAvx2, kAvx512, kAvx512Bf16 };
inline constexpr std::array kGemmKernels{GemmKernel::kPlain, GemmKernel::kAvx2, GemmKernel::kAvx512,
                                         GemmKernel::kAvx512Bf16};
bool processor_has(GemmKernel kernel);
GemmKernel best_gemm_kernel(InstructionSet allowed);  // of those that the processor has
GemmKernel chosen_gemm_kernel();                      // best of chosen_instruction_set()

void multiply(const Gemm<Bf16, Bf16>& gemm, GemmKernel kernel = chosen_gemm_kernel());
void multiply(const Gemm<Bf16, float>& gemm, GemmKernel kernel = chosen_gemm_kernel());
void multiply(const Gemm<float, float>& gemm, Sgemm sgemm);

inline constexpr std::int64_t kGemmBufferBytes = (512 + 64 + 512) * 1024;

}  // namespace atl
