#include "kernels/block_cuda.h"
#include "kernels/outer_nesterov_cuda.h"

namespace atl {
namespace {

constexpr int kThreads = 256;

struct Fp32Values {
  const std::byte* bytes;
  __device__ float operator[](std::int64_t i) const { return reinterpret_cast<const float*>(bytes)[i]; }
};

struct Bf16Values {
  const std::byte* bytes;
  __device__ float operator[](std::int64_t i) const {
    const float x = __uint_as_float(static_cast<std::uint32_t>(reinterpret_cast<const std::uint16_t*>(bytes)[i]) << 16);
    return x == x ? x : cuda::quiet_nan_on_device();
  }
};

struct Int8BlockValues {
  const std::byte* bytes;
  __device__ float operator[](std::int64_t i) const {
    const std::byte* const block = bytes + i / kInt8BlockNumel * (2 + kInt8BlockNumel);
    const std::uint32_t upper = *reinterpret_cast<const std::uint16_t*>(block);
    const float scale = __uint_as_float(upper << 16);
    const auto q = reinterpret_cast<const std::int8_t*>(block + 2)[i % kInt8BlockNumel];
    return cuda::finite_on_device(scale) ? __fmul_rn(scale, static_cast<float>(q)) : cuda::quiet_nan_on_device();
  }
};

struct Int4E3m0Values {
  const std::byte* bytes;
  __device__ float operator[](std::int64_t i) const {
    const std::byte* const block = bytes + i / kBlockNumel * (4 + kBlockNumel / 2);
    const float scale = *reinterpret_cast<const float*>(block);
    const auto pair = static_cast<std::uint32_t>(block[4 + i % kBlockNumel / 2]);
    const float value = cuda::e3m0_value(scale, pair >> (i % 2 * 4) & 15u);
    return cuda::finite_on_device(scale) ? value : cuda::quiet_nan_on_device();
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

template <class Values>
cudaError_t launch(float* theta, float* velocity, Values values, std::int64_t numel, OuterSgd hyper,
                   cudaStream_t stream) {
  const auto groups = static_cast<unsigned>((numel + kThreads - 1) / kThreads);
  outer_nesterov_kernel<<<groups, kThreads, 0, stream>>>(theta, velocity, values, numel, hyper);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_outer_nesterov(float* theta, float* velocity, WireFormat format, const std::byte* canonical,
                                  std::int64_t shard_numel, OuterSgd hyper, cudaStream_t stream) {
  if (shard_numel == 0) return cudaSuccess;
  switch (format) {
    case WireFormat::kFp32: return launch(theta, velocity, Fp32Values{canonical}, shard_numel, hyper, stream);
    case WireFormat::kBf16: return launch(theta, velocity, Bf16Values{canonical}, shard_numel, hyper, stream);
    case WireFormat::kInt8Block: return launch(theta, velocity, Int8BlockValues{canonical}, shard_numel, hyper, stream);
    case WireFormat::kInt4E3m0: return launch(theta, velocity, Int4E3m0Values{canonical}, shard_numel, hyper, stream);
    case WireFormat::kInt8Codebook: break;
  }
  return cudaErrorInvalidValue;
}

}  // namespace atl
