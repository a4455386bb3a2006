// What is done to the few values that a step has of its own, beside the model's kernels (kernels/model/model_cuda.h).
// Device memory, no aliasing. Asynchronous on `stream`; the result says whether the launch was accepted.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace atl::cuda {

// sum += values: the sums of ranks that share a GPU.
cudaError_t launch_add_doubles(double* sum, const double* values, std::int64_t numel, cudaStream_t stream);

// After clipping, which has set `apply` for a step by itself: nothing is applied once one was not finite (ClipScale,
// net/step/operation.h).
cudaError_t launch_stop(float* apply, float* stopped, cudaStream_t stream);

}  // namespace atl::cuda
