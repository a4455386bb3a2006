#include "kernels/block_cuda.h"
#include "kernels/codec_cuda.h"

namespace atl::cuda {
namespace {

using Decode = DeviceDecode<WireFormat::kInt4E3m0>;
constexpr std::int64_t kBytes = Decode::kBytes;

// Eight values in a row, which make four bytes.
struct FirstOfRun {
  int lane;
  __device__ int operator()(int run) const { return lane * kPerLane + run * 4; }
};

// As code_of in int4_e3m0.cpp.
__device__ std::uint32_t code_of(float ratio) {
  const std::uint32_t magnitude = __float_as_uint(ratio) & kMagnitudeMask;
  const std::uint32_t exponent = (magnitude + 0x00400000u) >> 23;
  const std::uint32_t code = (max(exponent, 121u) - 120u) | (__float_as_uint(ratio) >> 31 << 3);
  return magnitude < 0x3c000000u ? 0u : code;  // 2^-7
}

__global__ void encode_kernel(const float* __restrict__ x, std::int64_t numel, std::byte* __restrict__ encoded) {
  const WarpBlock block = block_of_warp(numel);
  const FirstOfRun first{block.lane};
  float value[kPerLane];
  load_lane(x + block.index * kBlockNumel, block.count, first, value);
  const std::uint32_t largest = largest_in_warp(value);
  if (block.count == 0) return;
  const bool poisoned = largest >= kInfinityBits;
  float scale = poisoned ? quiet_nan_on_device() : __uint_as_float(largest);
  if (scale < kMinInt4Scale) scale = 0.0f;
  std::byte* const bytes = encoded + block.index * kBytes;
  if (block.lane == 0) *reinterpret_cast<float*>(bytes) = scale;
  const bool zero = poisoned || scale == 0.0f;
  const float inverse = __fdiv_rn(1.0f, scale);
  std::uint32_t packed = 0;
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    if (!zero) packed |= code_of(__fmul_rn(value[k], inverse)) << (4 * k);
  }
  std::byte* const pairs = bytes + Decode::kHeadBytes + first(0) / 2;
  if (block.count == kBlockNumel) {
    *reinterpret_cast<std::uint32_t*>(pairs) = packed;
  } else {
    for (int k = 0; k < 4; ++k) {
      if (first(0) + 2 * k < block.count) pairs[k] = static_cast<std::byte>(packed >> (8 * k));
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
  const float scale = Decode::scale_of(bytes);
  float value[kPerLane];
  if constexpr (kAdd) load_lane(values, block.count, first, value);
  const std::byte* const pairs = bytes + Decode::kHeadBytes + first(0) / 2;
  std::uint32_t packed = 0;
  if (block.count == kBlockNumel) {
    packed = *reinterpret_cast<const std::uint32_t*>(pairs);
  } else {
    for (int k = 0; k < 4; ++k) {
      if (first(0) + 2 * k < block.count) packed |= static_cast<std::uint32_t>(pairs[k]) << (8 * k);
    }
  }
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    const float decoded = Decode::value(scale, packed >> (4 * k) & 15u);
    value[k] = kAdd ? added(value[k], decoded) : decoded;
  }
  store_lane(values, block.count, first, value);
}

}  // namespace

cudaError_t encode_int4_e3m0(const float* x, std::int64_t numel, std::byte* encoded, cudaStream_t stream) {
  encode_kernel<<<groups_for(numel), kThreads, 0, stream>>>(x, numel, encoded);
  return cudaGetLastError();
}

cudaError_t decode_int4_e3m0(const std::byte* encoded, std::int64_t numel, bool add, float* x, cudaStream_t stream) {
  const auto kernel = add ? decode_kernel<true> : decode_kernel<false>;
  kernel<<<groups_for(numel), kThreads, 0, stream>>>(encoded, numel, x);
  return cudaGetLastError();
}

}  // namespace atl::cuda
