// The formats' launchers behind kernels/wire_codec_cuda.h, one .cu file each. Arguments as there; numel > 0.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace atl::cuda {

cudaError_t encode_bf16(const float* x, std::int64_t numel, std::byte* encoded, cudaStream_t stream);
cudaError_t decode_bf16(const std::byte* encoded, std::int64_t numel, bool add, float* x, cudaStream_t stream);
cudaError_t encode_int8_block(const float* x, std::int64_t numel, std::byte* encoded, cudaStream_t stream);
cudaError_t decode_int8_block(const std::byte* encoded, std::int64_t numel, bool add, float* x, cudaStream_t stream);
cudaError_t encode_int4_e3m0(const float* x, std::int64_t numel, std::byte* encoded, cudaStream_t stream);
cudaError_t decode_int4_e3m0(const std::byte* encoded, std::int64_t numel, bool add, float* x, cudaStream_t stream);

}  // namespace atl::cuda
