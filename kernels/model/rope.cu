#include "kernels/model/device_cuda.h"
#include "kernels/model/model_cuda.h"

namespace atl::cuda {
namespace {

constexpr int kThreads = 256;

// A block a row; a thread turns kWidth neighbouring pairs:
//   x[i] <- x[i] cos - x[i + half] sin;  x[i + half] <- x[i + half] cos + x[i] sin
template <class T, int kWidth>
__global__ __launch_bounds__(kThreads) void rope_kernel(T* x, std::int64_t stride, const float* __restrict__ cosines,
                                                        const float* __restrict__ sines, unsigned heads, unsigned half,
                                                        unsigned length, const std::int32_t* __restrict__ starts,
                                                        float direction) {
  const unsigned row = blockIdx.x;
  const std::int64_t position = static_cast<std::int64_t>(row % length) - (starts == nullptr ? 0 : starts[row]);
  const std::int64_t angles = position * half;
  const unsigned pieces = half / kWidth;  // of a head
  for (unsigned i = threadIdx.x; i < heads * pieces; i += kThreads) {
    const unsigned pair = i % pieces * kWidth;
    T* const first = x + row * stride + static_cast<std::int64_t>(i / pieces) * 2 * half + pair;
    T* const second = first + half;
    const Values<float, kWidth> cosine = load<kWidth>(cosines + angles + pair);
    const Values<float, kWidth> sine = load<kWidth>(sines + angles + pair);
    const Values<T, kWidth> a = load<kWidth>(first);
    const Values<T, kWidth> b = load<kWidth>(second);
    float turned_a[kWidth];
    float turned_b[kWidth];
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const float s = direction * sine[k];
      turned_a[k] = a[k] * cosine[k] - b[k] * s;
      turned_b[k] = b[k] * cosine[k] + a[k] * s;
    }
    store<kWidth>(first, turned_a);
    store<kWidth>(second, turned_b);
  }
}

}  // namespace

template <class T>
cudaError_t launch_rope(T* x, std::int64_t stride, std::int64_t rows, const float* cosines, const float* sines,
                        std::int64_t heads, std::int64_t head_dim, std::int64_t length, const std::int32_t* starts,
                        float direction, cudaStream_t stream) {
  if (rows == 0 || heads == 0) return cudaSuccess;
  const std::int64_t half = head_dim / 2;
  if (rows > kMostGroups || heads * half > kMostGroups || length > kMostGroups || head_dim % 2 != 0 || length < 1) {
    return cudaErrorInvalidValue;
  }
  const auto kernel =
      in_vectors<T>({half, stride}, {x, cosines, sines}) ? rope_kernel<T, kVector<T>> : rope_kernel<T, 1>;
  const auto groups = static_cast<unsigned>(rows);
  kernel<<<groups, kThreads, 0, stream>>>(x, stride, cosines, sines, static_cast<unsigned>(heads),
                                          static_cast<unsigned>(half), static_cast<unsigned>(length), starts,
                                          direction);
  return cudaGetLastError();
}

template cudaError_t launch_rope(float*, std::int64_t, std::int64_t, const float*, const float*, std::int64_t,
                                 std::int64_t, std::int64_t, const std::int32_t*, float, cudaStream_t);
template cudaError_t launch_rope(Bf16*, std::int64_t, std::int64_t, const float*, const float*, std::int64_t,
                                 std::int64_t, std::int64_t, const std::int32_t*, float, cudaStream_t);

}  // namespace atl::cuda
