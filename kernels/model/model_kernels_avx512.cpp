// Compiled with -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma; called only where the processor has them all
// (kernels/instruction_set.h).
#define ATOLL_MODEL_LANES 16
#include "kernels/model/model_kernels_body.h"
#include "kernels/model/model_kernels_sets.h"

namespace atl::avx512 {

constinit const ModelKernels<float> kModelKernelsFp32 = make_model_kernels<float>();
constinit const ModelKernels<Bf16> kModelKernelsBf16 = make_model_kernels<Bf16>();
constinit const ValueKernels kValueKernels = make_value_kernels();

}  // namespace atl::avx512
