// What the model's kernels share, device code: values that are read and written 16 bytes at a time, and sums in an
// order that depends on the number of threads alone. Included by .cu files alone.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <initializer_list>

#include "kernels/model/model_kernels.h"

namespace atl::cuda {

inline constexpr int kWarpLanes = 32;
inline constexpr unsigned kWholeWarp = 0xffffffffu;

// Values of T in 16 bytes.
template <class T>
inline constexpr int kVector = static_cast<int>(16 / sizeof(T));

// Whether all rows of such sizes, at such addresses, may be accessed kVector<T> values at a time.
template <class T>
bool in_vectors(std::initializer_list<std::int64_t> sizes, std::initializer_list<const void*> pointers) {
  bool all = true;
  for (const std::int64_t size : sizes) all = all && size % kVector<T> == 0;
  for (const void* pointer : pointers) all = all && reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
  return all;
}

inline constexpr std::int64_t kMostGroups = 2147483647;  // of a grid

inline std::int64_t divided_upwards(std::int64_t numel, std::int64_t size) { return (numel + size - 1) / size; }

// For kernels whose blocks of threads go on, grid by grid, until all is done.
inline unsigned groups_for(std::int64_t pieces, std::int64_t most) {
  return static_cast<unsigned>(pieces < most ? pieces : most);
}

// kWidth neighbouring values, as they are in memory.
template <class T, int kWidth>
struct Values;

template <int kWidth>
struct Values<float, kWidth> {
  float x[kWidth];
  __device__ float operator[](int k) const { return x[k]; }
};

template <int kWidth>
struct Values<Bf16, kWidth> {
  std::uint32_t pair[(kWidth + 1) / 2];  // the first of two in the low half
  __device__ float operator[](int k) const {
    return __uint_as_float(k % 2 == 0 ? pair[k / 2] << 16 : pair[k / 2] & 0xffff0000u);
  }
};

// `from` is aligned to kWidth values, to 16 bytes at most.
template <int kWidth>
__device__ inline Values<float, kWidth> load(const float* from) {
  Values<float, kWidth> values;
  if constexpr (kWidth % 4 == 0) {
#pragma unroll
    for (int k = 0; k < kWidth; k += 4) {
      const float4 four = *reinterpret_cast<const float4*>(from + k);
      values.x[k] = four.x;
      values.x[k + 1] = four.y;
      values.x[k + 2] = four.z;
      values.x[k + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int k = 0; k < kWidth; ++k) values.x[k] = from[k];
  }
  return values;
}

template <int kWidth>
__device__ inline Values<Bf16, kWidth> load(const Bf16* from) {
  static_assert(kWidth == 1 || kWidth == 4 || kWidth == 8);
  Values<Bf16, kWidth> values;
  if constexpr (kWidth == 8) {
    const uint4 words = *reinterpret_cast<const uint4*>(from);
    values.pair[0] = words.x;
    values.pair[1] = words.y;
    values.pair[2] = words.z;
    values.pair[3] = words.w;
  } else if constexpr (kWidth == 4) {
    const uint2 words = *reinterpret_cast<const uint2*>(from);
    values.pair[0] = words.x;
    values.pair[1] = words.y;
  } else {
    values.pair[0] = from->bits;
  }
  return values;
}

// Both to nearest even, a NaN to a NaN, in one instruction; `low` in the low half.
__device__ inline std::uint32_t rounded_pair(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return static_cast<std::uint32_t>(__bfloat16_as_ushort(pair.y)) << 16 | __bfloat16_as_ushort(pair.x);
}

template <int kWidth>
__device__ inline void store(float* to, const float (&x)[kWidth]) {
  if constexpr (kWidth % 4 == 0) {
#pragma unroll
    for (int k = 0; k < kWidth; k += 4) {
      *reinterpret_cast<float4*>(to + k) = make_float4(x[k], x[k + 1], x[k + 2], x[k + 3]);
    }
  } else {
#pragma unroll
    for (int k = 0; k < kWidth; ++k) to[k] = x[k];
  }
}

template <int kWidth>
__device__ inline void store(Bf16* to, const float (&x)[kWidth]) {
  static_assert(kWidth == 1 || kWidth == 4 || kWidth == 8);
  if constexpr (kWidth == 8) {
    *reinterpret_cast<uint4*>(to) = make_uint4(rounded_pair(x[0], x[1]), rounded_pair(x[2], x[3]),
                                               rounded_pair(x[4], x[5]), rounded_pair(x[6], x[7]));
  } else if constexpr (kWidth == 4) {
    *reinterpret_cast<uint2*>(to) = make_uint2(rounded_pair(x[0], x[1]), rounded_pair(x[2], x[3]));
  } else {
    to->bits = static_cast<std::uint16_t>(rounded_pair(x[0], 0.0f));
  }
}

// The same bits on all lanes: each step adds two halves, and a + b is b + a.
template <class Sum>
__device__ inline Sum sum_of_warp(Sum x) {
#pragma unroll
  for (int half = kWarpLanes / 2; half > 0; half /= 2) x += __shfl_xor_sync(kWholeWarp, x, half);
  return x;
}

// On all threads of the block. `shared` holds a value a warp; whoever calls again sees to it, with a barrier or with
// another `shared`, that all have read.
template <int kThreads, class Sum>
__device__ inline Sum sum_of_block(Sum x, Sum* shared) {
  constexpr int kWarps = kThreads / kWarpLanes;
  x = sum_of_warp(x);
  if (threadIdx.x % kWarpLanes == 0) shared[threadIdx.x / kWarpLanes] = x;
  __syncthreads();
  Sum sum = shared[0];
#pragma unroll
  for (int warp = 1; warp < kWarps; ++warp) sum += shared[warp];
  return sum;
}

}  // namespace atl::cuda
