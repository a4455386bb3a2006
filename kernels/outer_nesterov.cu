#include "kernels/int8_block.h"
#include "kernels/outer_nesterov_cuda.h"

namespace atl {
namespace {

constexpr int kThreads = 256;

struct Fp32Values {
  const std::byte* bytes;
  __device__ float operator[](std::int64_t i) const { return reinterpret_cast<const float*>(bytes)[i]; }
};

struct Int8BlockValues {
  const std::byte* bytes;
  __device__ float operator[](std::int64_t i) const {
    const std::byte* const block = bytes + i / kBlockNumel * (4 + kBlockNumel);
    const float scale = *reinterpret_cast<const float*>(block);
    const auto q = reinterpret_cast<const std::int8_t*>(block + 4)[i % kBlockNumel];
    const bool finite = (__float_as_uint(scale) & 0x7fffffffu) <= 0x7f7fffffu;
    return finite ? __fmul_rn(scale, static_cast<float>(q)) : __uint_as_float(kPoisonedScaleBits);
  }
};

// The _rn forms are never contracted into a fused multiply-add.
template <class Values>
__global__ void outer_nesterov_kernel(float* __restrict__ theta, float* __restrict__ velocity, Values values,
                                      std::int64_t numel, OuterSgd hyper) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= numel) return;
  const float d = values[i];
  const float v = __fadd_rn(__fmul_rn(hyper.momentum, velocity[i]), d);
  velocity[i] = v;
  const float step = __fadd_rn(d, __fmul_rn(hyper.momentum, v));
  theta[i] = __fsub_rn(theta[i], __fmul_rn(hyper.learning_rate, step));
}

}  // namespace

cudaError_t launch_outer_nesterov(float* theta, float* velocity, WireFormat format, const std::byte* canonical,
                                  std::int64_t shard_numel, OuterSgd hyper, cudaStream_t stream) {
  if (shard_numel == 0) return cudaSuccess;
  const auto groups = static_cast<unsigned>((shard_numel + kThreads - 1) / kThreads);
  if (format == WireFormat::kInt8Block) {
    outer_nesterov_kernel<<<groups, kThreads, 0, stream>>>(theta, velocity, Int8BlockValues{canonical}, shard_numel,
                                                           hyper);
  } else {
    outer_nesterov_kernel<<<groups, kThreads, 0, stream>>>(theta, velocity, Fp32Values{canonical}, shard_numel, hyper);
  }
  return cudaGetLastError();
}

}  // namespace atl
