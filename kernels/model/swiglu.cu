#include "kernels/model/device_cuda.h"
#include "kernels/model/model_cuda.h"

namespace atl::cuda {
namespace {

constexpr int kThreads = 256;

__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

// Where a thread's kWidth columns of `inner` are: a block has one row's next kThreads * kWidth.
struct Place {
  std::int64_t row, column;
};
template <int kWidth>
__device__ inline Place place_of_thread(unsigned spans) {
  return {blockIdx.x / spans, (static_cast<std::int64_t>(blockIdx.x % spans) * kThreads + threadIdx.x) * kWidth};
}

template <class T, int kWidth>
__global__ __launch_bounds__(kThreads) void swiglu_kernel(const T* __restrict__ gate_up, unsigned spans,
                                                          std::int64_t inner, T* __restrict__ out) {
  const Place at = place_of_thread<kWidth>(spans);
  if (at.column >= inner) return;
  const T* const from = gate_up + at.row * 2 * inner + at.column;
  const Values<T, kWidth> gate = load<kWidth>(from);
  const Values<T, kWidth> up = load<kWidth>(from + inner);
  float product[kWidth];
#pragma unroll
  for (int k = 0; k < kWidth; ++k) product[k] = gate[k] * sigmoid(gate[k]) * up[k];
  store<kWidth>(out + at.row * inner + at.column, product);
}

// With s = sigmoid(gate):  dup = dout gate s;  dgate = dout up s (1 + gate (1 - s)).
// dgate_up may be gate_up: a thread writes what it alone has read.
template <class T, int kWidth>
__global__ __launch_bounds__(kThreads) void swiglu_backward_kernel(const T* __restrict__ dout, const T* gate_up,
                                                                   unsigned spans, std::int64_t inner, T* dgate_up) {
  const Place at = place_of_thread<kWidth>(spans);
  if (at.column >= inner) return;
  const std::int64_t first = at.row * 2 * inner + at.column;
  const Values<T, kWidth> gate = load<kWidth>(gate_up + first);
  const Values<T, kWidth> up = load<kWidth>(gate_up + first + inner);
  const Values<T, kWidth> d = load<kWidth>(dout + at.row * inner + at.column);
  float dgate[kWidth];
  float dup[kWidth];
#pragma unroll
  for (int k = 0; k < kWidth; ++k) {
    const float s = sigmoid(gate[k]);
    dup[k] = d[k] * (gate[k] * s);
    dgate[k] = d[k] * up[k] * (s * (1.0f + gate[k] * (1.0f - s)));
  }
  store<kWidth>(dgate_up + first, dgate);
  store<kWidth>(dgate_up + first + inner, dup);
}

struct Grid {
  std::int64_t groups;
  unsigned spans;
};
Grid grid_of(std::int64_t rows, std::int64_t inner, int width) {
  const std::int64_t spans = divided_upwards(inner, kThreads * width);
  return {rows * spans, static_cast<unsigned>(spans)};
}

}  // namespace

template <class T>
cudaError_t launch_swiglu(const T* gate_up, std::int64_t rows, std::int64_t inner, T* out, cudaStream_t stream) {
  if (rows == 0 || inner == 0) return cudaSuccess;
  const bool wide = in_vectors<T>({inner}, {gate_up, out});
  const Grid grid = grid_of(rows, inner, wide ? kVector<T> : 1);
  if (grid.groups > kMostGroups) return cudaErrorInvalidValue;
  const auto groups = static_cast<unsigned>(grid.groups);
  const auto kernel = wide ? swiglu_kernel<T, kVector<T>> : swiglu_kernel<T, 1>;
  kernel<<<groups, kThreads, 0, stream>>>(gate_up, grid.spans, inner, out);
  return cudaGetLastError();
}

template <class T>
cudaError_t launch_swiglu_backward(const T* dout, const T* gate_up, std::int64_t rows, std::int64_t inner, T* dgate_up,
                                   cudaStream_t stream) {
  if (rows == 0 || inner == 0) return cudaSuccess;
  const bool wide = in_vectors<T>({inner}, {dout, gate_up, dgate_up});
  const Grid grid = grid_of(rows, inner, wide ? kVector<T> : 1);
  if (grid.groups > kMostGroups) return cudaErrorInvalidValue;
  const auto groups = static_cast<unsigned>(grid.groups);
  const auto kernel = wide ? swiglu_backward_kernel<T, kVector<T>> : swiglu_backward_kernel<T, 1>;
  kernel<<<groups, kThreads, 0, stream>>>(dout, gate_up, grid.spans, inner, dgate_up);
  return cudaGetLastError();
}

template cudaError_t launch_swiglu(const float*, std::int64_t, std::int64_t, float*, cudaStream_t);
template cudaError_t launch_swiglu(const Bf16*, std::int64_t, std::int64_t, Bf16*, cudaStream_t);
template cudaError_t launch_swiglu_backward(const float*, const float*, std::int64_t, std::int64_t, float*,
                                            cudaStream_t);
template cudaError_t launch_swiglu_backward(const Bf16*, const Bf16*, std::int64_t, std::int64_t, Bf16*, cudaStream_t);

}  // namespace atl::cuda
