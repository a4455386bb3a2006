#include <climits>

#include "kernels/model/largest_cuda.h"
#include "kernels/model/model_cuda.h"

namespace atl::cuda {
namespace {

// Large blocks, so that the rows under way on all processors (256 KB each at 128,256 logits in bf16) stay in the L2
// cache until their second pass.
constexpr int kThreads = kLargestThreads;
constexpr int kSumThreads = 256;

template <class T, int kWidth>
__global__ __launch_bounds__(kThreads) void cross_entropy_kernel(const CrossEntropyRows<T> a) {
  __shared__ Largest shared[kThreads / kWarpLanes];
  const std::int64_t row = blockIdx.x;
  const int vocab = static_cast<int>(a.vocab);
  T* const logits = a.logits + row * a.vocab;
  const int label = a.labels[row];
  if (label < 0) {  // adds nothing
    if (threadIdx.x == 0) a.row_sums[row] = a.row_sums[a.rows + row] = 0.0f;
    const float zeros[kWidth] = {};
    for (int column = static_cast<int>(threadIdx.x) * kWidth; a.gradient && column < vocab;
         column += kThreads * kWidth) {
      store<kWidth>(logits + column, zeros);
    }
    return;
  }
  // Read before the barrier, behind which the thread that has it writes its gradient.
  const float of_label = load<1>(logits + label)[0];
  const Largest largest = largest_of_block(largest_of_thread<T, kWidth>(logits, vocab), shared);
  if (threadIdx.x == 0) {
    a.row_sums[row] = logf(largest.sum) + (largest.value - of_label);
    a.row_sums[a.rows + row] = largest.value * largest.value;
  }
  if (!a.gradient) return;
  const float scale = a.scale[0];
  const float share = scale / largest.sum;
  const float of_largest = 2.0f * scale * a.max_z_loss * largest.value;
#pragma unroll 2
  for (int column = static_cast<int>(threadIdx.x) * kWidth; column < vocab; column += kThreads * kWidth) {
    const Values<T, kWidth> x = load<kWidth>(logits + column);
    float gradient[kWidth];
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      gradient[k] = expf(x[k] - largest.value) * share;
      if (column + k == label) gradient[k] -= scale;
      if (column + k == largest.column) gradient[k] += of_largest;
    }
    store<kWidth>(logits + column, gradient);
  }
}

// One block: each sum over rows in fp64, thread i adding rows i, i + kSumThreads, ...
__global__ __launch_bounds__(kSumThreads) void add_rows_kernel(const float* __restrict__ row_sums, std::int64_t rows,
                                                               double* cross_entropy, double* squared_largest) {
  __shared__ double shared[2][kSumThreads / kWarpLanes];
  double sum[2] = {0, 0};
  for (int which = 0; which < 2; ++which) {
#pragma unroll 4
    for (std::int64_t row = threadIdx.x; row < rows; row += kSumThreads) {
      sum[which] += static_cast<double>(row_sums[which * rows + row]);
    }
    sum[which] = sum_of_block<kSumThreads>(sum[which], shared[which]);
  }
  if (threadIdx.x != 0) return;
  *cross_entropy += sum[0];
  *squared_largest += sum[1];
}

}  // namespace

template <class T>
cudaError_t launch_cross_entropy(const CrossEntropyRows<T>& loss, cudaStream_t stream) {
  const CrossEntropyRows<T> a = loss;
  if (a.rows == 0) return cudaSuccess;
  // So that no column's sum with a block's span passes INT_MAX.
  if (a.rows > kMostGroups || a.vocab < 1 || a.vocab > INT_MAX - kThreads * kVector<T>) return cudaErrorInvalidValue;
  const bool wide = in_vectors<T>({a.vocab}, {a.logits});
  const auto kernel = wide ? cross_entropy_kernel<T, kVector<T>> : cross_entropy_kernel<T, 1>;
  const auto groups = static_cast<unsigned>(a.rows);
  kernel<<<groups, kThreads, 0, stream>>>(a);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) return error;
  add_rows_kernel<<<1, kSumThreads, 0, stream>>>(a.row_sums, a.rows, a.cross_entropy, a.squared_largest);
  return cudaGetLastError();
}

template cudaError_t launch_cross_entropy(const CrossEntropyRows<float>&, cudaStream_t);
template cudaError_t launch_cross_entropy(const CrossEntropyRows<Bf16>&, cudaStream_t);

}  // namespace atl::cuda
