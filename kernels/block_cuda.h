// What the kernels of the block formats share, device code: a warp a block, eight values a lane, in two runs of four
// that are loaded and stored 16 bytes at a time. Included by .cu files alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/decode_cuda.h"
#include "kernels/float_bits.h"
#include "kernels/int4_e3m0.h"
#include "kernels/int8_block.h"
#include "kernels/wire_format.h"

namespace atl::cuda {

inline constexpr int kWarp = 32;
inline constexpr int kWarpsPerGroup = 8;
inline constexpr int kThreads = kWarp * kWarpsPerGroup;
inline constexpr int kPerLane = static_cast<int>(kBlockNumel) / kWarp;

// Of a grid in which each warp has a block.
inline unsigned groups_for(std::int64_t numel) {
  const std::int64_t blocks = (numel + kBlockNumel - 1) / kBlockNumel;
  return static_cast<unsigned>((blocks + kWarpsPerGroup - 1) / kWarpsPerGroup);
}

struct WarpBlock {
  std::int64_t index;
  int count;  // of its values; 0 when the warp has no block
  int lane;
};

__device__ inline WarpBlock block_of_warp(std::int64_t numel) {
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kWarpsPerGroup + threadIdx.x / kWarp;
  const std::int64_t left = numel - index * kBlockNumel;
  const int count = left <= 0 ? 0 : static_cast<int>(left < kBlockNumel ? left : kBlockNumel);
  return {index, count, static_cast<int>(threadIdx.x % kWarp)};
}

// Eight values of a lane, from a block of `count` at `x`; runs of four begin at first(0) and first(1). 0 beyond the
// end.
template <class First>
__device__ inline void load_lane(const float* x, int count, First first, float (&value)[kPerLane]) {
#pragma unroll
  for (int run = 0; run < 2; ++run) {
    const int i = first(run);
    if (count == kBlockNumel) {
      const float4 four = *reinterpret_cast<const float4*>(x + i);
      value[4 * run] = four.x;
      value[4 * run + 1] = four.y;
      value[4 * run + 2] = four.z;
      value[4 * run + 3] = four.w;
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k) value[4 * run + k] = i + k < count ? x[i + k] : 0.0f;
    }
  }
}

template <class First>
__device__ inline void store_lane(float* x, int count, First first, const float (&value)[kPerLane]) {
#pragma unroll
  for (int run = 0; run < 2; ++run) {
    const int i = first(run);
    if (count == kBlockNumel) {
      *reinterpret_cast<float4*>(x + i) =
          make_float4(value[4 * run], value[4 * run + 1], value[4 * run + 2], value[4 * run + 3]);
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (i + k < count) x[i + k] = value[4 * run + k];
      }
    }
  }
}

// Bits of the largest magnitude in the warp, on every lane.
__device__ inline std::uint32_t largest_in_warp(const float (&value)[kPerLane]) {
  std::uint32_t largest = 0;
#pragma unroll
  for (int k = 0; k < kPerLane; ++k) largest = max(largest, __float_as_uint(value[k]) & kMagnitudeMask);
  return __reduce_max_sync(0xffffffffu, largest);
}

// x + y, each NaN the same one.
__device__ inline float added(float x, float y) { return without_payload_on_device(__fadd_rn(x, y)); }

}  // namespace atl::cuda
