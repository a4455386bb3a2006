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

// The first of the table's formats from kAt on that it is. A format that runs may use and that has no DeviceDecode does
// not compile.
template <std::size_t kAt = 0>
cudaError_t launch_format(float* theta, float* velocity, WireFormat format, const std::byte* canonical,
                          std::int64_t numel, OuterSgd hyper, cudaStream_t stream) {
  if constexpr (kAt == kWireFormatCount) {
    return cudaErrorInvalidValue;
  } else {
    if constexpr (kWireFormatTraits[kAt].for_runs) {
      constexpr WireFormat kFormat = kWireFormatTraits[kAt].format;
      if (format == kFormat) return launch<kFormat>(theta, velocity, canonical, numel, hyper, stream);
    }
    return launch_format<kAt + 1>(theta, velocity, format, canonical, numel, hyper, stream);
  }
}

}  // namespace

cudaError_t launch_outer_nesterov(float* theta, float* velocity, WireFormat format, const std::byte* canonical,
                                  std::int64_t shard_numel, OuterSgd hyper, cudaStream_t stream) {
  if (shard_numel == 0) return cudaSuccess;
  return launch_format(theta, velocity, format, canonical, shard_numel, hyper, stream);
}

}  // namespace atl
