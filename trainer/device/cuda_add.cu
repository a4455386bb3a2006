#include "trainer/device/cuda_add.h"

namespace atl::cuda {
namespace {

__global__ void add_doubles(double* sum, const double* values, std::int64_t numel) {
  for (std::int64_t i = threadIdx.x; i < numel; i += blockDim.x) sum[i] += values[i];
}

__global__ void stop(float* apply, float* stopped) {
  const bool finite = *apply != 0;
  if (*stopped != 0) *apply = 0;
  if (!finite) *stopped = 1;
}

}  // namespace

cudaError_t launch_add_doubles(double* sum, const double* values, std::int64_t numel, cudaStream_t stream) {
  if (numel == 0) return cudaSuccess;
  add_doubles<<<1, 32, 0, stream>>>(sum, values, numel);
  return cudaGetLastError();
}

cudaError_t launch_stop(float* apply, float* stopped, cudaStream_t stream) {
  stop<<<1, 1, 0, stream>>>(apply, stopped);
  return cudaGetLastError();
}

}  // namespace atl::cuda
