// Encoding and decoding on the GPU: the bytes and values of kernels/wire_codec.h, special values included. bf16,
// int8-block and int4-e3m0; fp32 is a copy (cudaMemcpyAsync), int8-codebook is not here.
//
// All pointers: device, no overlap; values: [numel], 16-byte aligned; encoded: encoded_bytes(format, numel) bytes,
// 4-byte aligned (bf16: 16). Asynchronous on `stream`; what is returned is the launch's result, cudaErrorInvalidValue
// for a format that is not here.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/wire_format.h"

namespace atl {

// encoded <- encode(x)
cudaError_t launch_encode(WireFormat format, const float* x, std::int64_t numel, std::byte* encoded,
                          cudaStream_t stream);
// x <- decode(encoded)
cudaError_t launch_decode(WireFormat format, const std::byte* encoded, std::int64_t numel, float* x,
                          cudaStream_t stream);
// sum[i] <- sum[i] + decode(encoded)[i]
cudaError_t launch_decode_add(WireFormat format, const std::byte* encoded, std::int64_t numel, float* sum,
                              cudaStream_t stream);

}  // namespace atl
