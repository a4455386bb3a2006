// Compiled with -mavx512f -mavx512bw -mavx512dq -mavx512vl; called only where the processor has them all
// (kernels/instruction_set.h). 28 of 32 registers hold sums.
#include "kernels/model/gemm_widened.h"

namespace atl::avx512 {

void multiply(const Gemm<Bf16, Bf16>& gemm) { multiply_blocks<WidenedKernel<16, 14>>(gemm); }
void multiply(const Gemm<Bf16, float>& gemm) { multiply_blocks<WidenedKernel<16, 14>>(gemm); }

}  // namespace atl::avx512
