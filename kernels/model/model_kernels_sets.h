// The tables of model_kernels.h, one for each instruction set that the model's kernels are compiled for. A file that
// may hold a set's instructions defines its tables and nothing else that other files could be linked with.
#pragma once

#include "kernels/model/model_kernels.h"

namespace atl {

namespace plain {
extern const ModelKernels<float> kModelKernelsFp32;
extern const ModelKernels<Bf16> kModelKernelsBf16;
extern const ValueKernels kValueKernels;
}  // namespace plain

#if defined(__x86_64__)
namespace avx2 {
extern const ModelKernels<float> kModelKernelsFp32;
extern const ModelKernels<Bf16> kModelKernelsBf16;
extern const ValueKernels kValueKernels;
}  // namespace avx2

namespace avx512 {
extern const ModelKernels<float> kModelKernelsFp32;
extern const ModelKernels<Bf16> kModelKernelsBf16;
extern const ValueKernels kValueKernels;
}  // namespace avx512
#endif

}  // namespace atl
