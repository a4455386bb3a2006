#include "kernels/int8_block.h"
#include "kernels/int8_block_cuda.h"

namespace atl {
namespace {

constexpr int kWarp = 32;
constexpr int kWarpsPerGroup = 8;
constexpr int kPerLane = static_cast<int>(kBlockNumel) / kWarp;

// One warp a block of values; a grid of these covers `numel`.
unsigned groups_for(std::int64_t numel) {
  const std::int64_t blocks = (numel + kBlockNumel - 1) / kBlockNumel;
  return static_cast<unsigned>((blocks + kWarpsPerGroup - 1) / kWarpsPerGroup);
}

struct BlockOfWarp {
  std::int64_t first;    // value
  int count;             // values; 0 when the warp has none
  std::int64_t encoded;  // byte of the scale
  int lane;
};

__device__ BlockOfWarp block_of_warp(std::int64_t numel) {
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * kWarpsPerGroup + threadIdx.x / kWarp;
  const std::int64_t first = block * kBlockNumel;
  const std::int64_t left = numel - first;
  const int count = left <= 0 ? 0 : static_cast<int>(left < kBlockNumel ? left : kBlockNumel);
  return {first, count, block * (4 + kBlockNumel), static_cast<int>(threadIdx.x % kWarp)};
}

__global__ void quantize_kernel(const float* __restrict__ x, std::int64_t numel, std::byte* __restrict__ encoded) {
  const BlockOfWarp mine = block_of_warp(numel);
  float value[kPerLane];
  int largest = 0;
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    const int i = k * kWarp + mine.lane;
    value[k] = i < mine.count ? x[mine.first + i] : 0.0f;
    largest = max(largest, __float_as_int(value[k]) & 0x7fffffff);
  }
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, distance));
  }
  if (mine.count == 0) return;
  const bool poisoned = largest > 0x7f7fffff;
  float scale = __fdiv_rn(__int_as_float(largest), 127.0f);
  if (poisoned) scale = __uint_as_float(kPoisonedScaleBits);
  if (scale < kMinInt8Scale) scale = 0.0f;
  if (mine.lane == 0) *reinterpret_cast<float*>(encoded + mine.encoded) = scale;
  auto* const q = reinterpret_cast<std::int8_t*>(encoded + mine.encoded + 4);
  const bool zero = poisoned || scale == 0.0f;
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) {
    const int i = k * kWarp + mine.lane;
    if (i < mine.count) q[i] = zero ? 0 : static_cast<std::int8_t>(__float2int_rn(__fdiv_rn(value[k], scale)));
  }
}

template <bool kAdd>
__global__ void dequantize_kernel(const std::byte* __restrict__ encoded, std::int64_t numel, float* __restrict__ x) {
  const BlockOfWarp mine = block_of_warp(numel);
  if (mine.count == 0) return;
  const float scale = *reinterpret_cast<const float*>(encoded + mine.encoded);
  const bool finite = (__float_as_uint(scale) & 0x7fffffffu) <= 0x7f7fffffu;
  const auto* const q = reinterpret_cast<const std::int8_t*>(encoded + mine.encoded + 4);
  for (int i = mine.lane; i < mine.count; i += kWarp) {
    const float value = __fmul_rn(scale, static_cast<float>(q[i]));
    float result = value;
    if constexpr (kAdd) result = __fadd_rn(x[mine.first + i], value);
    x[mine.first + i] = finite ? result : __uint_as_float(kPoisonedScaleBits);
  }
}

}  // namespace

cudaError_t launch_quantize_int8_block(const float* x, std::int64_t numel, std::byte* encoded, cudaStream_t stream) {
  if (numel == 0) return cudaSuccess;
  quantize_kernel<<<groups_for(numel), kWarp * kWarpsPerGroup, 0, stream>>>(x, numel, encoded);
  return cudaGetLastError();
}

cudaError_t launch_dequantize_int8_block(const std::byte* encoded, std::int64_t numel, float* x, cudaStream_t stream) {
  if (numel == 0) return cudaSuccess;
  dequantize_kernel<false><<<groups_for(numel), kWarp * kWarpsPerGroup, 0, stream>>>(encoded, numel, x);
  return cudaGetLastError();
}

cudaError_t launch_dequantize_add_int8_block(const std::byte* encoded, std::int64_t numel, float* sum,
                                             cudaStream_t stream) {
  if (numel == 0) return cudaSuccess;
  dequantize_kernel<true><<<groups_for(numel), kWarp * kWarpsPerGroup, 0, stream>>>(encoded, numel, sum);
  return cudaGetLastError();
}

}  // namespace atl
