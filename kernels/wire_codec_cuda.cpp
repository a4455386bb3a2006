#include "kernels/wire_codec_cuda.h"

#include "kernels/codec_cuda.h"

namespace atl {
namespace {

cudaError_t decode(WireFormat format, const std::byte* encoded, std::int64_t numel, bool add, float* x,
                   cudaStream_t stream) {
  if (numel == 0) return cudaSuccess;
  switch (format) {
    case WireFormat::kBf16: return cuda::decode_bf16(encoded, numel, add, x, stream);
    case WireFormat::kInt8Block: return cuda::decode_int8_block(encoded, numel, add, x, stream);
    case WireFormat::kInt4E3m0: return cuda::decode_int4_e3m0(encoded, numel, add, x, stream);
    case WireFormat::kFp32:          // a copy
    case WireFormat::kInt8Codebook:  // of benchmarks alone
      break;
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t launch_encode(WireFormat format, const float* x, std::int64_t numel, std::byte* encoded,
                          cudaStream_t stream) {
  if (numel == 0) return cudaSuccess;
  switch (format) {
    case WireFormat::kBf16: return cuda::encode_bf16(x, numel, encoded, stream);
    case WireFormat::kInt8Block: return cuda::encode_int8_block(x, numel, encoded, stream);
    case WireFormat::kInt4E3m0: return cuda::encode_int4_e3m0(x, numel, encoded, stream);
    case WireFormat::kFp32:          // a copy
    case WireFormat::kInt8Codebook:  // of benchmarks alone
      break;
  }
  return cudaErrorInvalidValue;
}

cudaError_t launch_decode(WireFormat format, const std::byte* encoded, std::int64_t numel, float* x,
                          cudaStream_t stream) {
  return decode(format, encoded, numel, false, x, stream);
}

cudaError_t launch_decode_add(WireFormat format, const std::byte* encoded, std::int64_t numel, float* sum,
                              cudaStream_t stream) {
  return decode(format, encoded, numel, true, sum, stream);
}

}  // namespace atl
