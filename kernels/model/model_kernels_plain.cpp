// Compiled for any processor: four lanes are what x86-64 and ARMv8 always have.
#define ATOLL_MODEL_LANES 4
#include "kernels/model/model_kernels_body.h"
#include "kernels/model/model_kernels_sets.h"

namespace atl::plain {

constinit const ModelKernels<float> kModelKernelsFp32 = make_model_kernels<float>();
constinit const ModelKernels<Bf16> kModelKernelsBf16 = make_model_kernels<Bf16>();
constinit const ValueKernels kValueKernels = make_value_kernels();

}  // namespace atl::plain
