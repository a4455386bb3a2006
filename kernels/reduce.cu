#include "kernels/reduce.h"
#include "kernels/reduce_cuda.h"

namespace atl {
namespace {

constexpr int kLanes = static_cast<int>(kNormLanes);
constexpr std::int64_t kRow = static_cast<std::int64_t>(kNormRowNumel);
constexpr int kThreads = 256;
constexpr int kUnrolled = 16;  // loads under way at once in each lane

std::int64_t rows_of(std::int64_t numel) { return (numel + kRow - 1) / kRow; }

// The square of a float is exact in double: adding it fused rounds once, as the reference does.
__device__ double add_term(double sum, float x) { return fma(static_cast<double>(x), static_cast<double>(x), sum); }
__device__ double add_term(double sum, double x) { return __dadd_rn(sum, x); }

// kLanes threads a row: thread i adds values i, i + kLanes, ... in this order; then halves are folded.
template <class Value>
__global__ void row_sums_kernel(const Value* __restrict__ x, std::int64_t numel, double* __restrict__ sums) {
  const std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x % kLanes);
  const std::int64_t left = numel - row * kRow;
  const int count = left <= 0 ? 0 : static_cast<int>(left < kRow ? left : kRow);
  const Value* const mine = x + row * kRow + lane;
  double sum = 0;
  int i = 0;
  for (; i + kUnrolled * kLanes <= count; i += kUnrolled * kLanes) {
    Value value[kUnrolled];
#pragma unroll
    for (int k = 0; k < kUnrolled; ++k) value[k] = mine[i + k * kLanes];
#pragma unroll
    for (int k = 0; k < kUnrolled; ++k) sum = add_term(sum, value[k]);
  }
  for (; i + lane < count; i += kLanes) sum = add_term(sum, mine[i]);
#pragma unroll
  for (int half = kLanes / 2; half > 0; half /= 2) {
    sum = __dadd_rn(sum, __shfl_down_sync(0xffffffffu, sum, static_cast<unsigned>(half), kLanes));
  }
  if (lane == 0 && count > 0) sums[row] = sum;
}

template <class Value>
cudaError_t launch_row_sums(const Value* x, std::int64_t numel, double* sums, cudaStream_t stream) {
  const std::int64_t threads = rows_of(numel) * kLanes;
  const auto groups = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
  row_sums_kernel<<<groups, kThreads, 0, stream>>>(x, numel, sums);
  return cudaGetLastError();
}

}  // namespace

std::int64_t squared_norm_scratch_numel(std::int64_t numel) {
  std::int64_t scratch = 0;
  for (std::int64_t rows = rows_of(numel); rows > 1; rows = rows_of(rows)) scratch += rows;
  return scratch;
}

cudaError_t launch_squared_norm(const float* x, std::int64_t numel, double* scratch, double* norm,
                                cudaStream_t stream) {
  if (numel == 0) return cudaMemsetAsync(norm, 0, sizeof(double), stream);
  std::int64_t rows = rows_of(numel);
  double* sums = rows == 1 ? norm : scratch;
  cudaError_t error = launch_row_sums(x, numel, sums, stream);
  while (error == cudaSuccess && rows > 1) {
    const std::int64_t values = rows;
    const double* const from = sums;
    rows = rows_of(values);
    sums = rows == 1 ? norm : sums + values;
    error = launch_row_sums(from, values, sums, stream);
  }
  return error;
}

}  // namespace atl
