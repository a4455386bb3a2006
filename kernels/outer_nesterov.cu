#include "kernels/decode_cuda.h"
#include "kernels/outer_nesterov_cuda.h"

namespace atl {
namespace {

constexpr int kThreads = 256;

// The _rn forms are never contracted into a fused multiply-add.
template <WireFormat kFormat>
__global__ void outer_nesterov_kernel(float* __restrict__ theta, float* __restrict__ velocity,
                                      const std::byte* __restrict__ canonical, std::int64_t numel, OuterSgd hyper) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= numel) return;
  const float d = cuda::DeviceDecode<kFormat>::at(canonical, i);
  const float v = __fadd_rn(__fmul_rn(hyper.momentum, velocity[i]), d);
  velocity[i] = v;
  const float step = __fadd_rn(d, __fmul_rn(hyper.momentum, v));
  theta[i] = __fsub_rn(theta[i], __fmul_rn(hyper.learning_rate, step));
}

template <WireFormat kFormat>
cudaError_t launch(float* theta, float* velocity, const std::byte* canonical, std::int64_t numel, OuterSgd hyper,
                   cudaStream_t stream) {
  const auto groups = static_cast<unsigned>((numel + kThreads - 1) / kThreads);
  const auto kernel = outer_nesterov_kernel<kFormat>;
  kernel<<<groups, kThreads, 0, stream>>>(theta, velocity, canonical, numel, hyper);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_outer_nesterov(float* theta, float* velocity, WireFormat format, const std::byte* canonical,
                                  std::int64_t shard_numel, OuterSgd hyper, cudaStream_t stream) {
  if (shard_numel == 0) return cudaSuccess;
  switch (format) {
    case WireFormat::kFp32: return launch<WireFormat::kFp32>(theta, velocity, canonical, shard_numel, hyper, stream);
    case WireFormat::kBf16: return launch<WireFormat::kBf16>(theta, velocity, canonical, shard_numel, hyper, stream);
    case WireFormat::kInt8Block:
      return launch<WireFormat::kInt8Block>(theta, velocity, canonical, shard_numel, hyper, stream);
    case WireFormat::kInt4E3m0:
      return launch<WireFormat::kInt4E3m0>(theta, velocity, canonical, shard_numel, hyper, stream);
    case WireFormat::kInt8Codebook: break;
  }
  return cudaErrorInvalidValue;
}

}  // namespace atl
