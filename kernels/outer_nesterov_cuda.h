// The outer Nesterov step on the GPU: the same bits as kernels/outer_nesterov.h, for finite values.
// All pointers: device, no overlap; theta, velocity: [shard_numel]; canonical: encoded_bytes(format, shard_numel)
// bytes, 4-byte aligned. Asynchronous on `stream`; the return value is that of the launch, cudaErrorInvalidValue for
// int8-codebook, which is not here.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/outer_nesterov.h"

namespace atl {

cudaError_t launch_outer_nesterov(float* theta, float* velocity, WireFormat format, const std::byte* canonical,
                                  std::int64_t shard_numel, OuterSgd hyper, cudaStream_t stream);

}  // namespace atl
