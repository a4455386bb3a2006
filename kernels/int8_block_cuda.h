// int8-block on the GPU: the same bytes and values as kernels/int8_block.h, special values included.
// All pointers: device, no overlap; encoded: encoded_bytes(WireFormat::kInt8Block, numel) bytes, 4-byte aligned.
// Asynchronous on `stream`; the return value is that of the launch.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace atl {

cudaError_t launch_quantize_int8_block(const float* x, std::int64_t numel, std::byte* encoded, cudaStream_t stream);
cudaError_t launch_dequantize_int8_block(const std::byte* encoded, std::int64_t numel, float* x, cudaStream_t stream);
// sum[i] <- sum[i] + x'[i]
cudaError_t launch_dequantize_add_int8_block(const std::byte* encoded, std::int64_t numel, float* sum,
                                             cudaStream_t stream);

}  // namespace atl
