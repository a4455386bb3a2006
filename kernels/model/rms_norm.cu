#include "kernels/model/device_cuda.h"
#include "kernels/model/model_cuda.h"

namespace atl::cuda {
namespace {

// A block of kThreads has one row (forward) or kAtOnce rows (backward) in its registers, kHeld vectors of each a
// thread. Where a row is longer, or is not in vectors, it is read twice.
constexpr int kSimpleThreads = 256;

// A thread's columns of a row, or of what goes with every row.
template <class T, int kHeld>
using Held = Values<T, kVector<T>>[kHeld];

template <class T, int kThreads>
__device__ inline int column_of(int h) {
  return (h * kThreads + static_cast<int>(threadIdx.x)) * kVector<T>;
}

template <class T, int kThreads, int kHeld>
__device__ inline void load_held(const T* row, std::int64_t hidden, Held<T, kHeld>& held) {
#pragma unroll
  for (int h = 0; h < kHeld; ++h) {
    const int column = column_of<T, kThreads>(h);
    if (column < hidden) held[h] = load<kVector<T>>(row + column);
  }
}

// y = weight * (x * inverse).
template <class T, int kThreads, int kHeld>
__global__ __launch_bounds__(kThreads) void rms_norm_kernel(const T* __restrict__ x, const T* __restrict__ weight,
                                                            float epsilon, std::int64_t rows, std::int64_t hidden,
                                                            T* __restrict__ y, float* __restrict__ inverse_rms) {
  constexpr int kWidth = kVector<T>;
  // Two, so that a row's sums are written while the row before's may still be read.
  __shared__ float shared[2][kThreads / kWarpLanes];
  int half = 0;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x, half ^= 1) {
    Held<T, kHeld> held = {};
    load_held<T, kThreads, kHeld>(x + row * hidden, hidden, held);
    float squares = 0;
#pragma unroll
    for (int h = 0; h < kHeld; ++h) {
#pragma unroll
      for (int k = 0; k < kWidth; ++k) squares += held[h][k] * held[h][k];
    }
    squares = sum_of_block<kThreads>(squares, shared[half]);
    const float inverse = 1.0f / sqrtf(squares / static_cast<float>(hidden) + epsilon);
    if (threadIdx.x == 0) inverse_rms[row] = inverse;
#pragma unroll
    for (int h = 0; h < kHeld; ++h) {
      const int column = column_of<T, kThreads>(h);
      if (column >= hidden) continue;
      const Values<T, kWidth> scale = load<kWidth>(weight + column);
      float out[kWidth];
#pragma unroll
      for (int k = 0; k < kWidth; ++k) out[k] = held[h][k] * inverse * scale[k];
      store<kWidth>(y + row * hidden + column, out);
    }
  }
}

template <class T>
__global__ __launch_bounds__(kSimpleThreads) void rms_norm_simple_kernel(const T* __restrict__ x,
                                                                         const T* __restrict__ weight, float epsilon,
                                                                         std::int64_t rows, std::int64_t hidden,
                                                                         T* __restrict__ y,
                                                                         float* __restrict__ inverse_rms) {
  __shared__ float shared[2][kSimpleThreads / kWarpLanes];
  int half = 0;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x, half ^= 1) {
    const T* const in = x + row * hidden;
    float squares = 0;
    for (std::int64_t i = threadIdx.x; i < hidden; i += kSimpleThreads) {
      const float value = load<1>(in + i)[0];
      squares += value * value;
    }
    squares = sum_of_block<kSimpleThreads>(squares, shared[half]);
    const float inverse = 1.0f / sqrtf(squares / static_cast<float>(hidden) + epsilon);
    if (threadIdx.x == 0) inverse_rms[row] = inverse;
    for (std::int64_t i = threadIdx.x; i < hidden; i += kSimpleThreads) {
      const float out[1] = {load<1>(in + i)[0] * inverse * load<1>(weight + i)[0]};
      store<1>(y + row * hidden + i, out);
    }
  }
}

// dweight += dy n; returns the sum of the thread's g n.
template <class T, int kHeld>
__device__ inline float add_products(const Held<T, kHeld>& dy, const Held<T, kHeld>& x, float inverse,
                                     const Held<T, kHeld>& weight, float (&dweight)[kHeld][kVector<T>]) {
  float sum = 0;
#pragma unroll
  for (int h = 0; h < kHeld; ++h) {
#pragma unroll
    for (int k = 0; k < kVector<T>; ++k) {
      const float product = dy[h][k] * (x[h][k] * inverse);
      dweight[h][k] += product;
      sum += product * weight[h][k];
    }
  }
  return sum;
}

template <class T, int kThreads, int kHeld>
__device__ inline void store_dx(const RmsNormGradient<T>& a, std::int64_t row, const Held<T, kHeld>& dy,
                                const Held<T, kHeld>& x, float inverse, const Held<T, kHeld>& weight, float mean) {
#pragma unroll
  for (int h = 0; h < kHeld; ++h) {
    const int column = column_of<T, kThreads>(h);
    if (column >= a.hidden) continue;
    const std::int64_t at = row * a.hidden + column;
    float out[kVector<T>];
#pragma unroll
    for (int k = 0; k < kVector<T>; ++k) out[k] = inverse * (weight[h][k] * dy[h][k] - x[h][k] * inverse * mean);
    if (a.residual != nullptr) {
      const Values<T, kVector<T>> residual = load<kVector<T>>(a.residual + at);
#pragma unroll
      for (int k = 0; k < kVector<T>; ++k) out[k] += residual[k];
    }
    store<kVector<T>>(a.dx + at, out);
  }
}

// With n = x * inverse and g = weight * dy:  dx = inverse (g - n mean(g n)) + residual;  dweight = sum over rows of dy
// n. A block goes through the rows of a part in order, kAtOnce at a time, so that their loads are under way together
// and share a barrier; each thread adds its own columns' dweight in registers.
template <class T, int kThreads, int kHeld>
__global__ __launch_bounds__(kThreads) void rms_norm_backward_kernel(const RmsNormGradient<T> a) {
  constexpr int kAtOnce = kHeld > 2 ? 1 : 2;
  __shared__ float shared[2][kAtOnce][kThreads / kWarpLanes];
  int half = 0;
  const std::int64_t end = min((blockIdx.x + std::int64_t{1}) * a.part_rows, a.rows);
  Held<T, kHeld> weight = {};
  float dweight[kHeld][kVector<T>] = {};
  load_held<T, kThreads, kHeld>(a.weight, a.hidden, weight);
  for (std::int64_t first = blockIdx.x * a.part_rows; first < end; first += kAtOnce, half ^= 1) {
    Held<T, kHeld> dy[kAtOnce] = {};
    Held<T, kHeld> x[kAtOnce] = {};
    float inverse[kAtOnce] = {};
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) {
      if (first + n >= end) continue;
      inverse[n] = a.inverse_rms[first + n];
      load_held<T, kThreads, kHeld>(a.dy + (first + n) * a.hidden, a.hidden, dy[n]);
      load_held<T, kThreads, kHeld>(a.x + (first + n) * a.hidden, a.hidden, x[n]);
    }
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) {
      const float sum = sum_of_warp(add_products<T, kHeld>(dy[n], x[n], inverse[n], weight, dweight));
      if (threadIdx.x % kWarpLanes == 0) shared[half][n][threadIdx.x / kWarpLanes] = sum;
    }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < kAtOnce; ++n) {
      if (first + n >= end) continue;
      float sum = shared[half][n][0];
#pragma unroll
      for (int warp = 1; warp < kThreads / kWarpLanes; ++warp) sum += shared[half][n][warp];
      const float mean = sum / static_cast<float>(a.hidden);
      store_dx<T, kThreads, kHeld>(a, first + n, dy[n], x[n], inverse[n], weight, mean);
    }
  }
#pragma unroll
  for (int h = 0; h < kHeld; ++h) {
    const int column = column_of<T, kThreads>(h);
    if (column < a.hidden) store<kVector<T>>(a.partial + blockIdx.x * a.hidden + column, dweight[h]);
  }
}

template <class T>
__global__ __launch_bounds__(kSimpleThreads) void rms_norm_backward_simple_kernel(const RmsNormGradient<T> a) {
  __shared__ float shared[2][kSimpleThreads / kWarpLanes];
  int half = 0;
  float* const partial = a.partial + blockIdx.x * a.hidden;
  const std::int64_t begin = blockIdx.x * a.part_rows;
  const std::int64_t end = min(begin + a.part_rows, a.rows);
  for (std::int64_t row = begin; row < end; ++row, half ^= 1) {
    const std::int64_t at = row * a.hidden;
    const float inverse = a.inverse_rms[row];
    float sum = 0;
    for (std::int64_t i = threadIdx.x; i < a.hidden; i += kSimpleThreads) {
      const float product = load<1>(a.dy + at + i)[0] * (load<1>(a.x + at + i)[0] * inverse);
      partial[i] = row == begin ? product : partial[i] + product;
      sum += product * load<1>(a.weight + i)[0];
    }
    const float mean = sum_of_block<kSimpleThreads>(sum, shared[half]) / static_cast<float>(a.hidden);
    for (std::int64_t i = threadIdx.x; i < a.hidden; i += kSimpleThreads) {
      const float g = load<1>(a.weight + i)[0] * load<1>(a.dy + at + i)[0];
      float out[1] = {inverse * (g - load<1>(a.x + at + i)[0] * inverse * mean)};
      if (a.residual != nullptr) out[0] += load<1>(a.residual + at + i)[0];
      store<1>(a.dx + at + i, out);
    }
  }
}

// dweight (+)= the sum over parts. A block has 32 columns; each of its warps adds every kPartWarps-th part, and the
// warps' sums are added in their order.
constexpr int kPartWarps = 8;

__global__ __launch_bounds__(kPartWarps* kWarpLanes) void add_parts_kernel(const float* __restrict__ partial,
                                                                           std::int64_t parts, std::int64_t hidden,
                                                                           bool accumulate,
                                                                           float* __restrict__ dweight) {
  __shared__ float shared[kPartWarps][kWarpLanes];
  const unsigned lane = threadIdx.x % kWarpLanes;
  const unsigned warp = threadIdx.x / kWarpLanes;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kWarpLanes + lane;
  float sum = 0;
  if (column < hidden) {
#pragma unroll 8
    for (std::int64_t part = warp; part < parts; part += kPartWarps) sum += partial[part * hidden + column];
  }
  shared[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= hidden) return;
  for (int other = 1; other < kPartWarps; ++other) sum += shared[other][lane];
  dweight[column] = accumulate ? dweight[column] + sum : sum;
}

// Calls shape<kThreads, kHeld>() for the smallest shape that holds a row of so many vectors; false where none does.
template <class Shape>
bool with_row_shape(std::int64_t vectors, const Shape& shape) {
  if (vectors <= 128) return shape.template operator()<128, 1>(), true;
  if (vectors <= 256) return shape.template operator()<256, 1>(), true;
  if (vectors <= 512) return shape.template operator()<256, 2>(), true;
  if (vectors <= 1024) return shape.template operator()<512, 2>(), true;
  if (vectors <= 2048) return shape.template operator()<512, 4>(), true;
  return false;
}

}  // namespace

template <class T>
cudaError_t launch_rms_norm(const T* x, const T* weight, float epsilon, std::int64_t rows, std::int64_t hidden, T* y,
                            float* inverse_rms, cudaStream_t stream) {
  if (rows == 0 || hidden == 0) return cudaSuccess;
  const unsigned groups = groups_for(rows, kMostGroups);
  const auto held = [&]<int kThreads, int kHeld>() {
    const auto kernel = rms_norm_kernel<T, kThreads, kHeld>;
    kernel<<<groups, kThreads, 0, stream>>>(x, weight, epsilon, rows, hidden, y, inverse_rms);
  };
  if (!in_vectors<T>({hidden}, {x, weight, y}) || !with_row_shape(hidden / kVector<T>, held)) {
    const auto kernel = rms_norm_simple_kernel<T>;
    kernel<<<groups, kSimpleThreads, 0, stream>>>(x, weight, epsilon, rows, hidden, y, inverse_rms);
  }
  return cudaGetLastError();
}

template <class T>
cudaError_t launch_rms_norm_backward(const RmsNormGradient<T>& gradient, cudaStream_t stream) {
  const RmsNormGradient<T> a = gradient;
  if (a.hidden == 0) return cudaSuccess;
  const std::int64_t parts = divided_upwards(a.rows, a.part_rows);
  if (parts > kMostGroups) return cudaErrorInvalidValue;
  const auto groups = static_cast<unsigned>(parts);
  const auto held = [&]<int kThreads, int kHeld>() {
    const auto kernel = rms_norm_backward_kernel<T, kThreads, kHeld>;
    kernel<<<groups, kThreads, 0, stream>>>(a);
  };
  if (parts > 0) {
    if (!in_vectors<T>({a.hidden}, {a.dy, a.x, a.weight, a.residual, a.dx, a.partial}) ||
        !with_row_shape(a.hidden / kVector<T>, held)) {
      const auto kernel = rms_norm_backward_simple_kernel<T>;
      kernel<<<groups, kSimpleThreads, 0, stream>>>(a);
    }
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) return error;
  }
  const auto column_groups = static_cast<unsigned>(divided_upwards(a.hidden, kWarpLanes));
  constexpr int kThreads = kPartWarps * kWarpLanes;
  add_parts_kernel<<<column_groups, kThreads, 0, stream>>>(a.partial, parts, a.hidden, a.accumulate, a.dweight);
  return cudaGetLastError();
}

template cudaError_t launch_rms_norm(const float*, const float*, float, std::int64_t, std::int64_t, float*, float*,
                                     cudaStream_t);
template cudaError_t launch_rms_norm(const Bf16*, const Bf16*, float, std::int64_t, std::int64_t, Bf16*, float*,
                                     cudaStream_t);
template cudaError_t launch_rms_norm_backward(const RmsNormGradient<float>&, cudaStream_t);
template cudaError_t launch_rms_norm_backward(const RmsNormGradient<Bf16>&, cudaStream_t);

}  // namespace atl::cuda
