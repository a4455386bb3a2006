// Compiled with -mavx2 -mfma; called only where the processor has both.
#define ATOLL_MODEL_LANES 8
#include "kernels/model/model_kernels_body.h"
#include "kernels/model/model_kernels_sets.h"

namespace atl::avx2 {

constinit const ModelKernels<float> kModelKernelsFp32 = make_model_kernels<float>();
constinit const ModelKernels<Bf16> kModelKernelsBf16 = make_model_kernels<Bf16>();
constinit const ValueKernels kValueKernels = make_value_kernels();

}  // namespace atl::avx2
