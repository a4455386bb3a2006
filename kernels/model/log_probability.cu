#include <climits>

#include "kernels/model/largest_cuda.h"
#include "kernels/model/model_cuda.h"

namespace atl::cuda {
namespace {

template <class T, int kWidth>
__global__ __launch_bounds__(kLargestThreads) void log_probability_kernel(const LogProbabilityRows<T> a) {
  __shared__ Largest shared[kLargestThreads / kWarpLanes];
  const std::int64_t row = blockIdx.x;
  const T* const logits = a.logits + row * a.vocab;
  const Largest largest = largest_of_block(largest_of_thread<T, kWidth>(logits, static_cast<int>(a.vocab)), shared);
  if (threadIdx.x != 0) return;
  const int label = a.labels[row];
  a.log_probabilities[row] = (load<1>(logits + label)[0] - largest.value) - logf(largest.sum);
  // Beside a NaN nothing is the largest.
  a.greedy[row] = largest.column == label && largest.sum == largest.sum ? 1 : 0;
}

}  // namespace

template <class T>
cudaError_t launch_log_probability(const LogProbabilityRows<T>& rows, cudaStream_t stream) {
  const LogProbabilityRows<T> a = rows;
  if (a.rows == 0) return cudaSuccess;
  // As launch_cross_entropy.
  if (a.rows > kMostGroups || a.vocab < 1 || a.vocab > INT_MAX - kLargestThreads * kVector<T>) {
    return cudaErrorInvalidValue;
  }
  const bool wide = in_vectors<T>({a.vocab}, {a.logits});
  const auto kernel = wide ? log_probability_kernel<T, kVector<T>> : log_probability_kernel<T, 1>;
  const auto groups = static_cast<unsigned>(a.rows);
  kernel<<<groups, kLargestThreads, 0, stream>>>(a);
  return cudaGetLastError();
}

template cudaError_t launch_log_probability(const LogProbabilityRows<float>&, cudaStream_t);
template cudaError_t launch_log_probability(const LogProbabilityRows<Bf16>&, cudaStream_t);

}  // namespace atl::cuda
