// The largest of a row of logits and the sum of their exponentials, by a block of threads a row: what the loss and the
// label's probability are made of. Device code, included by .cu files alone.
#pragma once

#include <cfloat>
#include <climits>

#include "kernels/model/device_cuda.h"

namespace atl::cuda {

inline constexpr int kLargestThreads = 1024;  // of a block

// Of a set of logits: the largest, its first column, and sum over the set of exp(logit - largest). A NaN is in no
// comparison the larger, but makes the sum NaN.
struct Largest {
  float value;
  int column;
  float sum;
};

__device__ inline Largest merged(const Largest& a, const Largest& b) {
  const bool second = b.value > a.value || (b.value == a.value && b.column < a.column);
  const float value = second ? b.value : a.value;
  return {value, second ? b.column : a.column, a.sum * expf(a.value - value) + b.sum * expf(b.value - value)};
}

// On all threads, the same bits: warps halve, then each thread merges the warps in their order.
__device__ inline Largest largest_of_block(Largest x, Largest* shared) {
#pragma unroll
  for (int half = kWarpLanes / 2; half > 0; half /= 2) {
    const auto step = static_cast<unsigned>(half);
    x = merged(x, {__shfl_down_sync(kWholeWarp, x.value, step), __shfl_down_sync(kWholeWarp, x.column, step),
                   __shfl_down_sync(kWholeWarp, x.sum, step)});
  }
  if (threadIdx.x % kWarpLanes == 0) shared[threadIdx.x / kWarpLanes] = x;
  __syncthreads();
  x = shared[0];
  for (int warp = 1; warp < kLargestThreads / kWarpLanes; ++warp) x = merged(x, shared[warp]);
  return x;
}

// Online softmax (arXiv:1805.02867) over this thread's columns, in ascending order.
template <class T, int kWidth>
__device__ inline Largest largest_of_thread(const T* logits, int vocab) {
  Largest largest{-FLT_MAX, INT_MAX, 0};
#pragma unroll 4
  for (int column = static_cast<int>(threadIdx.x) * kWidth; column < vocab; column += kLargestThreads * kWidth) {
    const Values<T, kWidth> x = load<kWidth>(logits + column);
    float top = x[0];
#pragma unroll
    for (int k = 1; k < kWidth; ++k) top = fmaxf(top, x[k]);
    if (top > largest.value) {
      largest.sum *= expf(largest.value - top);
      largest.value = top;
#pragma unroll
      for (int k = kWidth - 1; k >= 0; --k) largest.column = x[k] == top ? column + k : largest.column;
    }
#pragma unroll
    for (int k = 0; k < kWidth; ++k) largest.sum += expf(x[k] - largest.value);
  }
  return largest;
}

}  // namespace atl::cuda
