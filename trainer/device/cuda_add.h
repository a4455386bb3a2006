// sum += values, for the few fp64 sums of a step where ranks share a GPU. fp32: kernels/model/model_cuda.h.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace atl::cuda {

// Device memory, no aliasing. Asynchronous on `stream`; the result says whether the launch was accepted.
cudaError_t launch_add_doubles(double* sum, const double* values, std::int64_t numel, cudaStream_t stream);

}  // namespace atl::cuda
