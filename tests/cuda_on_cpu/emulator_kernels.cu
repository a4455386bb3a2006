#include "tests/cuda_on_cpu/emulator_kernels.h"

#include <cuda_bf16.h>

namespace atl {
namespace {

constexpr int kThreads = 64;

__device__ float barrier_habit(Habit habit, unsigned t) {
  __shared__ float tile[kThreads], other;
  if (habit == Habit::kBarriersAlike) __syncthreads();
  if (habit == Habit::kBarriersDiffer) {
    if (t < 32) {
      __syncthreads();
    } else {
      __syncthreads();
    }
  }
  if (habit == Habit::kBarrierOfSome && t < 40) __syncthreads();
  if (habit == Habit::kBarrierOfSome && t >= 40) __syncwarp(0xffffff00u);
  if (habit == Habit::kReadAfterBarrier || habit == Habit::kReadWithoutBarrier) {
    tile[t] = static_cast<float>(t);
    if (habit == Habit::kReadAfterBarrier) __syncthreads();
    return tile[kThreads - 1 - t];
  }
  if (habit == Habit::kOverwriteAfterBarrier || habit == Habit::kOverwriteWithoutBarrier) {
    if (t == 0) other = 1.0f;
    __syncthreads();
    const float read = other;
    if (habit == Habit::kOverwriteAfterBarrier) __syncthreads();
    if (t == 0) other = 2.0f;
    return read;
  }
  if (habit == Habit::kReadAfterWarpBarrier || habit == Habit::kReadWithoutWarpBarrier) {
    tile[t] = static_cast<float>(t);
    if (habit == Habit::kReadAfterWarpBarrier) __syncwarp();
    return tile[t ^ 1u];
  }
  if (habit == Habit::kReadPastSharedEnd) return tile[t + 1];
  return 0;
}

__device__ float warp_habit(Habit habit, unsigned t) {
  const unsigned lane = t % 32;
  if (habit == Habit::kMaskOfHalfAWarp && lane < 16) return __shfl_xor_sync(0xffffu, 1.0f, 8);
  if (habit == Habit::kMaskWithoutCaller) return __shfl_sync(0x7fffffffu, 1.0f, 0);
  if (habit == Habit::kShuffleFromOutsideMask && lane < 16) return __shfl_sync(0xffffu, 1.0f, 16);
  if (habit == Habit::kShuffleOfWidthThree) return __shfl_down_sync(0xffffffffu, 1.0f, 1, 3);
  if (habit == Habit::kWarpMeetsDifferently) {
    if (lane == 5) return static_cast<float>(__ballot_sync(0xffffffffu, 1));
    return __shfl_sync(0xffffffffu, 1.0f, 0);
  }
  return 0;
}

__device__ float memory_habit(Habit habit, unsigned t, float* values, const float* host) {
  const bool last = t == kThreads - 1;
  if (habit == Habit::kReadPastTheEnd && last) return values[kThreads];
  if (habit == Habit::kReadBeforeTheBegin && last) return values[-1];
  if (habit == Habit::kWritePastTheEnd && last) values[kThreads] = 0;
  if (habit == Habit::kReadOfHostMemory && last) return host[0];
  if (habit == Habit::kMisalignedVector && last) return reinterpret_cast<const float4*>(values + 1)->w;
  if (habit == Habit::kAtomicFromAllBlocks) atomicAdd(values, 1.0f);
  if (habit == Habit::kWriteFromAllBlocks && last) values[0] = 1.0f;
  if (habit == Habit::kAtomicAndRead && blockIdx.x == 0) {
    if (last) return values[0];
    atomicAdd(values, 1.0f);
  }
  if (habit == Habit::kTrap && last) __trap();
  return 0;
}

__device__ float dynamic_first() {
  extern __shared__ __align__(16) float bytes[];
  return bytes[0];
}

__global__ void habit_kernel(Habit habit, float* values, const float* host, float* sink) {
  const unsigned t = threadIdx.x;
  if (habit == Habit::kBarrierAfterSomeReturned && t == 3) return;
  if (habit == Habit::kBarrierAfterSomeReturned) __syncthreads();
  if (habit == Habit::kMaskOfReturnedLane) {
    if (t == 3) return;
    __syncwarp();
  }
  float got = barrier_habit(habit, t) + warp_habit(habit, t) + memory_habit(habit, t, values, host);
  if (habit == Habit::kDynamicWithoutAny) got += dynamic_first();
  sink[blockIdx.x * kThreads + t] = got;
}

__global__ void places_kernel(unsigned* __restrict__ out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned place = block * blockDim.x * blockDim.y * blockDim.z + thread;
  out[place] = place + 1;
}

__global__ void order_kernel(unsigned* taken, unsigned* order) {
  order[atomicAdd(taken, 1u)] = blockIdx.x * blockDim.x + threadIdx.x;
}

__global__ void unwritten_kernel(float* out) {
  __shared__ float own[32];
  extern __shared__ float bytes[];
  out[threadIdx.x] = own[threadIdx.x];
  out[32 + threadIdx.x] = bytes[threadIdx.x];
  __syncthreads();
  // For the next block, which must find none of it.
  own[threadIdx.x] = 1.0f;
  bytes[threadIdx.x] = 1.0f;
}

__global__ void warp_kernel(unsigned* out) {
  constexpr unsigned kAll = 0xffffffffu;
  const unsigned lane = threadIdx.x;
  const int below = static_cast<int>(lane) - 16;
  int row = 0;
  const auto put = [&](unsigned value) { out[32 * row++ + lane] = value; };
  put(__shfl_sync(kAll, lane, 3, 8));
  put(__shfl_sync(kAll, lane, static_cast<int>(lane) + 33));
  put(__shfl_up_sync(kAll, lane, 2, 8));
  put(__shfl_down_sync(kAll, lane, 3, 16));
  put(__shfl_xor_sync(kAll, lane, 5));
  put(__shfl_xor_sync(kAll, lane, 8, 8));
  put(static_cast<unsigned>(__shfl_down_sync(kAll, static_cast<double>(lane), 1u)));
  put(__ballot_sync(kAll, lane % 3 == 0));
  put(static_cast<unsigned>(__any_sync(kAll, lane == 9) + 2 * __all_sync(kAll, lane != 9)));
  put(__match_any_sync(kAll, lane % 4));
  put(__reduce_add_sync(kAll, lane));
  put(static_cast<unsigned>(__reduce_min_sync(kAll, below)));
  put(static_cast<unsigned>(__reduce_max_sync(kAll, below)));
  put(__reduce_xor_sync(kAll, lane * lane));
}

__global__ void atomics_kernel(float* sum, int* largest, unsigned* first, int* count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(sum, 1.0f);
  atomicMax(largest, i);
  atomicCAS(first, 0u, 7u);
  const int odd = __syncthreads_count(i % 2);
  if (threadIdx.x == 0) atomicAdd(count, odd);
}

template <class T>
__global__ void fill_kernel(T* out, T value) {
  out[threadIdx.x] = value;
}

__global__ void bf16_kernel(const float* __restrict__ x, float* __restrict__ y, int numel) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= numel) return;
  if (i % 3 == 0) y[i] = __bfloat162float(__float2bfloat16_rn(__ldg(x + i)));
  if (i % 3 == 1) y[i] = __low2float(__floats2bfloat162_rn(x[i], 0.0f));
  if (i % 3 == 2) y[i] = __bfloat1622float2(__float22bfloat162_rn(make_float2(0.0f, x[i]))).y;
}

}  // namespace

cudaError_t launch_habit(Habit habit, float* values, const float* host) {
  float* sink = nullptr;
  cudaMalloc(&sink, 2 * kThreads * sizeof(float));
  habit_kernel<<<2, kThreads>>>(habit, values, host, sink);
  const cudaError_t error = cudaGetLastError();
  cudaFree(sink);
  return error;
}

cudaError_t launch_places(dim3 grid, dim3 block, std::size_t shared_bytes, unsigned* out) {
  places_kernel<<<grid, block, shared_bytes>>>(out);
  return cudaGetLastError();
}

cudaError_t launch_order(unsigned grid, unsigned block, unsigned* taken, unsigned* order) {
  order_kernel<<<grid, block>>>(taken, order);
  return cudaGetLastError();
}

cudaError_t launch_unwritten_shared(float* out) {
  for (int time = 0; time < 2; ++time) unwritten_kernel<<<1, 32, 32 * sizeof(float), nullptr>>>(out);
  return cudaGetLastError();
}

cudaError_t launch_warp_functions(unsigned* out) {
  warp_kernel<<<1, 32>>>(out);
  return cudaGetLastError();
}

cudaError_t launch_atomics(float* sum, int* largest, unsigned* first, int* count) {
  atomics_kernel<<<2, kThreads>>>(sum, largest, first, count);
  return cudaGetLastError();
}

cudaError_t launch_counted_argument(int* out, int* evaluations) {
  const auto next = [&] { return ++*evaluations; };
  fill_kernel<<<dim3(1, 1), (kThreads >> 1) * 2, 0>>>(out, next());
  return cudaGetLastError();
}

cudaError_t launch_bf16(const float* x, float* y, int numel) {
  bf16_kernel<<<1, 1024>>>(x, y, numel);
  return cudaGetLastError();
}

}  // namespace atl
