// Compiled for any processor of the architecture: 12 of x86-64's 16 registers hold sums.
#include "kernels/model/gemm_widened.h"

namespace atl::plain {

void multiply(const Gemm<Bf16, Bf16>& gemm) { multiply_blocks<WidenedKernel<4, 6>>(gemm); }
void multiply(const Gemm<Bf16, float>& gemm) { multiply_blocks<WidenedKernel<4, 6>>(gemm); }

}  // namespace atl::plain
