// kernels/reduce.h on the GPU: the same sum, bit for bit.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace atl {

// Doubles that launch_squared_norm asks for beside the result.
std::int64_t squared_norm_scratch_numel(std::int64_t numel);

// *norm <- squared_norm(x): a NaN or an infinity where x holds one, so that one pass also says whether all is finite.
// All pointers: device, no overlap; x: [numel]; scratch: [squared_norm_scratch_numel(numel)]. Asynchronous on `stream`.
cudaError_t launch_squared_norm(const float* x, std::int64_t numel, double* scratch, double* norm, cudaStream_t stream);

}  // namespace atl
