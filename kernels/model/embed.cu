#include "kernels/model/device_cuda.h"
#include "kernels/model/model_cuda.h"

namespace atl::cuda {
namespace {

constexpr int kThreads = 128;

// A block a row, which it copies: Piece is T, or 16 bytes of it.
template <class Piece>
__global__ __launch_bounds__(kThreads) void embed_kernel(const Piece* __restrict__ table,
                                                         const std::int32_t* __restrict__ tokens, std::int64_t rows,
                                                         std::int64_t pieces, Piece* __restrict__ x) {
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const Piece* const from = table + tokens[row] * pieces;
    Piece* const to = x + row * pieces;
    for (std::int64_t i = threadIdx.x; i < pieces; i += kThreads) to[i] = from[i];
  }
}

// Behind the last place of `order` from `first` on whose row has the token: in steps that double, then halve, as tokens
// come once or twice as a rule and a few come in thousands of rows.
__device__ inline unsigned end_of_token(const std::int32_t* tokens, const std::int32_t* order, unsigned first,
                                        unsigned rows, std::int32_t token) {
  const auto same = [&](unsigned i) { return i < rows && tokens[order[i]] == token; };
  unsigned last = first;
  unsigned step = 1;
  for (; same(last + step); step *= 2) last += step;
  for (; step > 0; step /= 2) {
    if (same(last + step)) last += step;
  }
  return last + 1;
}

// A block for each place of `order` and each span of kThreads * kWidth columns; but only where a token's rows begin is
// there something to do, which is to add all of them.
template <class T, int kWidth>
__global__ __launch_bounds__(kThreads) void embed_backward_kernel(const T* __restrict__ dx,
                                                                  const std::int32_t* __restrict__ tokens,
                                                                  const std::int32_t* __restrict__ order, unsigned rows,
                                                                  unsigned spans, std::int64_t hidden,
                                                                  float* __restrict__ gradient) {
  const unsigned first = blockIdx.x / spans;
  const std::int64_t column = (static_cast<std::int64_t>(blockIdx.x % spans) * kThreads + threadIdx.x) * kWidth;
  const std::int32_t token = tokens[order[first]];
  if (first > 0 && tokens[order[first - 1]] == token) return;
  if (column >= hidden) return;
  const unsigned end = end_of_token(tokens, order, first, rows, token);
  float* const to = gradient + token * hidden + column;
  Values<float, kWidth> sum = load<kWidth>(to);
#pragma unroll 4
  for (unsigned i = first; i < end; ++i) {
    const Values<T, kWidth> values = load<kWidth>(dx + order[i] * hidden + column);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) sum.x[k] += values[k];
  }
  store<kWidth>(to, sum.x);
}

}  // namespace

template <class T>
cudaError_t launch_embed(const T* table, const std::int32_t* tokens, std::int64_t rows, std::int64_t hidden, T* x,
                         cudaStream_t stream) {
  if (rows == 0 || hidden == 0) return cudaSuccess;
  const unsigned groups = groups_for(rows, kMostGroups);
  if (in_vectors<T>({hidden}, {table, x})) {
    const auto kernel = embed_kernel<uint4>;
    kernel<<<groups, kThreads, 0, stream>>>(reinterpret_cast<const uint4*>(table), tokens, rows, hidden / kVector<T>,
                                            reinterpret_cast<uint4*>(x));
  } else {
    const auto kernel = embed_kernel<T>;
    kernel<<<groups, kThreads, 0, stream>>>(table, tokens, rows, hidden, x);
  }
  return cudaGetLastError();
}

template <class T>
cudaError_t launch_embed_backward(const T* dx, const std::int32_t* tokens, const std::int32_t* order, std::int64_t rows,
                                  std::int64_t hidden, float* gradient, cudaStream_t stream) {
  if (rows == 0 || hidden == 0) return cudaSuccess;
  const bool wide = in_vectors<T>({hidden}, {dx, gradient});
  const auto kernel = wide ? embed_backward_kernel<T, 4> : embed_backward_kernel<T, 1>;
  const std::int64_t spans = divided_upwards(hidden, kThreads * (wide ? 4 : 1));
  if (rows > kMostGroups / spans) return cudaErrorInvalidValue;
  const auto groups = static_cast<unsigned>(rows * spans);
  kernel<<<groups, kThreads, 0, stream>>>(dx, tokens, order, static_cast<unsigned>(rows), static_cast<unsigned>(spans),
                                          hidden, gradient);
  return cudaGetLastError();
}

template cudaError_t launch_embed(const float*, const std::int32_t*, std::int64_t, std::int64_t, float*, cudaStream_t);
template cudaError_t launch_embed(const Bf16*, const std::int32_t*, std::int64_t, std::int64_t, Bf16*, cudaStream_t);
template cudaError_t launch_embed_backward(const float*, const std::int32_t*, const std::int32_t*, std::int64_t,
                                           std::int64_t, float*, cudaStream_t);
template cudaError_t launch_embed_backward(const Bf16*, const std::int32_t*, const std::int32_t*, std::int64_t,
                                           std::int64_t, float*, cudaStream_t);

}  // namespace atl::cuda
