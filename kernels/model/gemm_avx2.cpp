// Compiled with -mavx2 -mfma; called only where the processor has both. 12 of 16 registers hold sums.
#include "kernels/model/gemm_widened.h"

namespace atl::avx2 {

void multiply(const Gemm<Bf16, Bf16>& gemm) { multiply_blocks<WidenedKernel<8, 6>>(gemm); }
void multiply(const Gemm<Bf16, float>& gemm) { multiply_blocks<WidenedKernel<8, 6>>(gemm); }

}  // namespace atl::avx2
