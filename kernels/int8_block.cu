#include "kernels/block_cuda.h"
#include "kernels/codec_cuda.h"

namespace atl::cuda {
namespace {

constexpr std::int64_t kBytes = 4 + kBlockNumel;

// Runs of four that a lane packs into four bytes, side by side with its neighbours'.
struct FirstOfRun {
  int lane;
  __device__ int operator()(int run) const { return run * (kPerLane / 2 * kWarp) + lane * 4; }
};

// round_to_nearest_even(x / scale): by a product with 1 / scale, which is off by less than 2^-15, unless that is too
// near the middle of two integers to tell (codec_simd.h does the same).
__device__ int nearest(float x, float scale, float inverse) {
  const float product = __fmul_rn(x, inverse);
  const float rounded = rintf(product);
  if (fabsf(product - rounded) <= 0.5f - 0x1p-15f) return static_cast<int>(rounded);
  return __float2int_rn(__fdiv_rn(x, scale));
}

__global__ void encode_kernel(const float* __restrict__ x, std::int64_t numel, std::byte* __restrict__ encoded) {
  const WarpBlock block = block_of_warp(numel);
  const FirstOfRun first{block.lane};
  float value[kPerLane];
  load_lane(x + block.index * kBlockNumel, block.count, first, value);
  const std::uint32_t largest = largest_in_warp(value);
  if (block.count == 0) return;
  const bool poisoned = largest >= kInfinityBits;
  float scale = poisoned ? quiet_nan_on_device() : __fdiv_rn(__uint_as_float(largest), 127.0f);
  if (scale < kMinInt8Scale) scale = 0.0f;
  std::byte* const bytes = encoded + block.index * kBytes;
  if (block.lane == 0) *reinterpret_cast<float*>(bytes) = scale;
  const bool zero = poisoned || scale == 0.0f;
  const float inverse = __fdiv_rn(1.0f, scale);
#pragma unroll
  for (int run = 0; run < 2; ++run) {
    std::uint32_t packed = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int q = zero ? 0 : nearest(value[4 * run + k], scale, inverse);
      packed |= (static_cast<std::uint32_t>(q) & 0xffu) << (8 * k);
    }
    std::byte* const q = bytes + 4 + first(run);
    if (block.count == kBlockNumel) {
      *reinterpret_cast<std::uint32_t*>(q) = packed;
    } else {
      for (int k = 0; k < 4; ++k) {
        if (first(run) + k < block.count) q[k] = static_cast<std::byte>(packed >> (8 * k));
      }
    }
  }
}

template <bool kAdd>
__global__ void decode_kernel(const std::byte* __restrict__ encoded, std::int64_t numel, float* __restrict__ x) {
  const WarpBlock block = block_of_warp(numel);
  if (block.count == 0) return;
  const FirstOfRun first{block.lane};
  const std::byte* const bytes = encoded + block.index * kBytes;
  float* const values = x + block.index * kBlockNumel;
  const float scale = *reinterpret_cast<const float*>(bytes);
  const bool finite = finite_on_device(scale);
  float value[kPerLane];
  if constexpr (kAdd) load_lane(values, block.count, first, value);
#pragma unroll
  for (int run = 0; run < 2; ++run) {
    const std::byte* const q = bytes + 4 + first(run);
    std::uint32_t packed = 0;
    if (block.count == kBlockNumel) {
      packed = *reinterpret_cast<const std::uint32_t*>(q);
    } else {
      for (int k = 0; k < 4; ++k) {
        if (first(run) + k < block.count) packed |= static_cast<std::uint32_t>(q[k]) << (8 * k);
      }
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const auto code = static_cast<std::int8_t>(packed >> (8 * k));
      const float decoded = finite ? __fmul_rn(scale, static_cast<float>(code)) : quiet_nan_on_device();
      value[4 * run + k] = kAdd ? added(value[4 * run + k], decoded) : decoded;
    }
  }
  store_lane(values, block.count, first, value);
}

}  // namespace

cudaError_t encode_int8_block(const float* x, std::int64_t numel, std::byte* encoded, cudaStream_t stream) {
  encode_kernel<<<groups_for(numel), kThreads, 0, stream>>>(x, numel, encoded);
  return cudaGetLastError();
}

cudaError_t decode_int8_block(const std::byte* encoded, std::int64_t numel, bool add, float* x, cudaStream_t stream) {
  const auto kernel = add ? decode_kernel<true> : decode_kernel<false>;
  kernel<<<groups_for(numel), kThreads, 0, stream>>>(encoded, numel, x);
  return cudaGetLastError();
}

}  // namespace atl::cuda
