#include "kernels/block_cuda.h"
#include "kernels/codec_cuda.h"

namespace atl::cuda {
namespace {

// Eight values in a row, which make one store of 16 bytes.
struct FirstOfRun {
  int lane;
  __device__ int operator()(int run) const { return lane * kPerLane + run * 4; }
};

__device__ std::uint32_t upper_half(float x) {
  const std::uint32_t bits = x == x ? __float_as_uint(x) : kQuietNaNBits;
  return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

__global__ void encode_kernel(const float* __restrict__ x, std::int64_t numel, std::uint16_t* __restrict__ encoded) {
  const WarpBlock block = block_of_warp(numel);
  if (block.count == 0) return;
  const FirstOfRun first{block.lane};
  float value[kPerLane];
  load_lane(x + block.index * kBlockNumel, block.count, first, value);
  std::uint16_t* const out = encoded + block.index * kBlockNumel + first(0);
  if (block.count == kBlockNumel) {
    std::uint32_t pair[4];
#pragma unroll
    for (int k = 0; k < 4; ++k) pair[k] = upper_half(value[2 * k]) | upper_half(value[2 * k + 1]) << 16;
    *reinterpret_cast<uint4*>(out) = make_uint4(pair[0], pair[1], pair[2], pair[3]);
  } else {
#pragma unroll
    for (int k = 0; k < kPerLane; ++k) {
      if (first(0) + k < block.count) out[k] = static_cast<std::uint16_t>(upper_half(value[k]));
    }
  }
}

template <bool kAdd>
__global__ void decode_kernel(const std::uint16_t* __restrict__ encoded, std::int64_t numel, float* __restrict__ x) {
  const WarpBlock block = block_of_warp(numel);
  if (block.count == 0) return;
  const FirstOfRun first{block.lane};
  float* const values = x + block.index * kBlockNumel;
  const std::uint16_t* const in = encoded + block.index * kBlockNumel + first(0);
  float value[kPerLane];
  if constexpr (kAdd) load_lane(values, block.count, first, value);
  std::uint32_t pair[4] = {0, 0, 0, 0};
  if (block.count == kBlockNumel) {
    const uint4 four = *reinterpret_cast<const uint4*>(in);
    pair[0] = four.x;
    pair[1] = four.y;
    pair[2] = four.z;
    pair[3] = four.w;
  } else {
#pragma unroll
    for (int k = 0; k < kPerLane; ++k) {
      if (first(0) + k < block.count) pair[k / 2] |= static_cast<std::uint32_t>(in[k]) << (k % 2 * 16);
    }
  }
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    const float decoded = DeviceDecode<WireFormat::kBf16>::value(pair[k / 2] >> (k % 2 * 16) & 0xffffu);
    value[k] = kAdd ? added(value[k], decoded) : decoded;
  }
  store_lane(values, block.count, first, value);
}

}  // namespace

cudaError_t encode_bf16(const float* x, std::int64_t numel, std::byte* encoded, cudaStream_t stream) {
  encode_kernel<<<groups_for(numel), kThreads, 0, stream>>>(x, numel, reinterpret_cast<std::uint16_t*>(encoded));
  return cudaGetLastError();
}

cudaError_t decode_bf16(const std::byte* encoded, std::int64_t numel, bool add, float* x, cudaStream_t stream) {
  const auto kernel = add ? decode_kernel<true> : decode_kernel<false>;
  kernel<<<groups_for(numel), kThreads, 0, stream>>>(reinterpret_cast<const std::uint16_t*>(encoded), numel, x);
  return cudaGetLastError();
}

}  // namespace atl::cuda
