#include "kernels/model/device_cuda.h"
#include "kernels/model/model_cuda.h"

namespace atl::cuda {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kGroups = 2048;  // that go on, grid by grid: some waves of any GPU
constexpr int kSumThreads = 1024;

// Calls element<kWidth>(i) with i of each of this thread's runs of kWidth elements, then element<1>(i) for what is left
// over.
template <int kWidth, class Element>
__device__ inline void for_each_run(std::int64_t numel, const Element& element) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kThreads * kWidth;
  const std::int64_t left = numel % kWidth;
  for (std::int64_t i = thread * kWidth; i < numel - left; i += step) element.template operator()<kWidth>(i);
  if (thread < left) element.template operator()<1>(numel - left + thread);
}

unsigned groups_of_runs(std::int64_t numel, int width) {
  return groups_for(divided_upwards(numel, kThreads * width), kGroups);
}

template <class T, int kWidth>
__global__ __launch_bounds__(kThreads) void fill_kernel(T* x, std::int64_t numel, float value) {
  for_each_run<kWidth>(numel, [&]<int kRun>(std::int64_t i) {
    if constexpr (sizeof(T) == sizeof(double)) {
      x[i] = static_cast<T>(value);
    } else {
      float values[kRun];
#pragma unroll
      for (int k = 0; k < kRun; ++k) values[k] = value;
      store<kRun>(x + i, values);
    }
  });
}

template <int kWidth>
__global__ __launch_bounds__(kThreads) void convert_kernel(const float* __restrict__ from, Bf16* __restrict__ to,
                                                           std::int64_t numel) {
  for_each_run<kWidth>(numel, [&]<int kRun>(std::int64_t i) {
    const Values<float, kRun> values = load<kRun>(from + i);
    store<kRun>(to + i, values.x);
  });
}

template <int kWidth>
__global__ __launch_bounds__(kThreads) void add_kernel(float* __restrict__ sum, const float* __restrict__ values,
                                                       std::int64_t numel) {
  for_each_run<kWidth>(numel, [&]<int kRun>(std::int64_t i) {
    Values<float, kRun> both = load<kRun>(sum + i);
    const Values<float, kRun> more = load<kRun>(values + i);
#pragma unroll
    for (int k = 0; k < kRun; ++k) both.x[k] += more[k];
    store<kRun>(sum + i, both.x);
  });
}

// A block a part. Thread i adds elements 4i .. 4i + 3 of each 4 * kThreads, whether they are read together or not.
template <int kWidth>
__global__ __launch_bounds__(kThreads) void squares_kernel(const float* __restrict__ x, std::int64_t numel,
                                                           std::int64_t part, double* __restrict__ sums) {
  __shared__ double shared[kThreads / kWarpLanes];
  const std::int64_t end = min((blockIdx.x + std::int64_t{1}) * part, numel);
  double sum = 0;
#pragma unroll 4
  for (std::int64_t i = blockIdx.x * part + threadIdx.x * 4; i < end; i += kThreads * 4) {
    if (kWidth == 4 && i + 4 <= end) {
      const Values<float, 4> four = load<4>(x + i);
#pragma unroll
      for (int k = 0; k < 4; ++k) sum = fma(static_cast<double>(four[k]), static_cast<double>(four[k]), sum);
    } else {
      for (std::int64_t k = i; k < i + 4 && k < end; ++k) {
        sum = fma(static_cast<double>(x[k]), static_cast<double>(x[k]), sum);
      }
    }
  }
  sum = sum_of_block<kThreads>(sum, shared);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

__global__ __launch_bounds__(kSumThreads) void add_sums_kernel(const double* __restrict__ sums, std::int64_t count,
                                                               double* __restrict__ total) {
  __shared__ double shared[kSumThreads / kWarpLanes];
  double sum = 0;
#pragma unroll 4
  for (std::int64_t i = threadIdx.x; i < count; i += kSumThreads) sum += sums[i];
  sum = sum_of_block<kSumThreads>(sum, shared);
  if (threadIdx.x == 0) *total = sum;
}

__device__ inline bool is_finite(double x) { return x - x == 0; }

__global__ void clip_scale_kernel(ClipScalars at, float clip_norm) {
  const auto inverse_tokens = static_cast<double>(*at.inverse_tokens);
  const double norm = sqrt(*at.gradient_squares);
  const bool finite = is_finite(*at.cross_entropy * inverse_tokens) &&
                      is_finite(*at.squared_largest_logit * inverse_tokens) && is_finite(norm);
  const double factor = static_cast<double>(clip_norm) / (norm + 1e-6);
  *at.apply = finite ? 1.0f : 0.0f;
  *at.gradient_scale = clip_norm > 0 && factor < 1 ? static_cast<float>(factor) : 1.0f;
}

struct Betas {
  float one_minus_beta1, beta2, one_minus_beta2, epsilon;
};

template <int kWidth>
__global__ __launch_bounds__(kThreads) void adamw_kernel(AdamWArrays arrays, AdamWScalars at, Betas betas) {
  if (*at.apply == 0) return;
  const float decay = *at.decay;
  const float step_size = *at.step_size;
  const float inverse_correction2 = *at.inverse_correction2;
  const float gradient_scale = *at.gradient_scale;
  for_each_run<kWidth>(arrays.numel, [&]<int kRun>(std::int64_t i) {
    Values<float, kRun> p = load<kRun>(arrays.parameters + i);
    const Values<float, kRun> gradient = load<kRun>(arrays.gradients + i);
    Values<float, kRun> m = load<kRun>(arrays.first_moment + i);
    Values<float, kRun> v = load<kRun>(arrays.second_moment + i);
#pragma unroll
    for (int k = 0; k < kRun; ++k) {
      const float g = gradient_scale * gradient[k];
      m.x[k] = m[k] + betas.one_minus_beta1 * (g - m[k]);
      v.x[k] = betas.beta2 * v[k] + betas.one_minus_beta2 * (g * g);
      p.x[k] = p[k] * decay - step_size * (m[k] / (sqrtf(v[k]) * inverse_correction2 + betas.epsilon));
    }
    store<kRun>(arrays.parameters + i, p.x);
    store<kRun>(arrays.first_moment + i, m.x);
    store<kRun>(arrays.second_moment + i, v.x);
    if (arrays.rounded != nullptr) store<kRun>(arrays.rounded + i, p.x);
  });
}

}  // namespace

template <class T>
cudaError_t launch_fill(T* x, std::int64_t numel, float value, cudaStream_t stream) {
  if (numel == 0) return cudaSuccess;
  constexpr int kWide = sizeof(T) == sizeof(double) ? 1 : kVector<T>;
  const bool wide = in_vectors<T>({}, {x});
  const auto kernel = wide ? fill_kernel<T, kWide> : fill_kernel<T, 1>;
  const unsigned groups = groups_of_runs(numel, wide ? kWide : 1);
  kernel<<<groups, kThreads, 0, stream>>>(x, numel, value);
  return cudaGetLastError();
}

cudaError_t launch_convert(const float* from, Bf16* to, std::int64_t numel, cudaStream_t stream) {
  if (numel == 0) return cudaSuccess;
  const bool wide = in_vectors<Bf16>({}, {from, to});
  const auto kernel = wide ? convert_kernel<8> : convert_kernel<1>;
  const unsigned groups = groups_of_runs(numel, wide ? 8 : 1);
  kernel<<<groups, kThreads, 0, stream>>>(from, to, numel);
  return cudaGetLastError();
}

cudaError_t launch_add(float* sum, const float* values, std::int64_t numel, cudaStream_t stream) {
  if (numel == 0) return cudaSuccess;
  const bool wide = in_vectors<float>({}, {sum, values});
  const auto kernel = wide ? add_kernel<4> : add_kernel<1>;
  const unsigned groups = groups_of_runs(numel, wide ? 4 : 1);
  kernel<<<groups, kThreads, 0, stream>>>(sum, values, numel);
  return cudaGetLastError();
}

cudaError_t launch_squared_norm(const float* x, std::int64_t numel, std::int64_t part, double* scratch, double* sum,
                                cudaStream_t stream) {
  const std::int64_t parts = divided_upwards(numel, part);
  if (parts > kMostGroups) return cudaErrorInvalidValue;
  if (parts > 0) {
    const auto kernel = in_vectors<float>({part}, {x}) ? squares_kernel<4> : squares_kernel<1>;
    const auto groups = static_cast<unsigned>(parts);
    kernel<<<groups, kThreads, 0, stream>>>(x, numel, part, scratch);
    const cudaError_t error = cudaGetLastError();
    if (error != cudaSuccess) return error;
  }
  add_sums_kernel<<<1, kSumThreads, 0, stream>>>(scratch, parts, sum);
  return cudaGetLastError();
}

cudaError_t launch_clip_scale(const ClipScalars& at, float clip_norm, cudaStream_t stream) {
  clip_scale_kernel<<<1, 1, 0, stream>>>(at, clip_norm);
  return cudaGetLastError();
}

cudaError_t launch_adamw(const AdamWArrays& arrays, const AdamWScalars& at, float beta1, float beta2, float epsilon,
                         cudaStream_t stream) {
  if (arrays.numel == 0) return cudaSuccess;
  const bool wide = in_vectors<float>(
      {arrays.numel}, {arrays.parameters, arrays.gradients, arrays.first_moment, arrays.second_moment, arrays.rounded});
  const auto kernel = wide ? adamw_kernel<4> : adamw_kernel<1>;
  const unsigned groups = groups_of_runs(arrays.numel, wide ? 4 : 1);
  const Betas betas{1.0f - beta1, beta2, 1.0f - beta2, epsilon};
  kernel<<<groups, kThreads, 0, stream>>>(arrays, at, betas);
  return cudaGetLastError();
}

template cudaError_t launch_fill(float*, std::int64_t, float, cudaStream_t);
template cudaError_t launch_fill(Bf16*, std::int64_t, float, cudaStream_t);
template cudaError_t launch_fill(double*, std::int64_t, float, cudaStream_t);

}  // namespace atl::cuda
