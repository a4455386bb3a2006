#include "trainer/device/cuda_add.h"

namespace atl::cuda {
namespace {

__global__ void add_doubles(double* sum, const double* values, std::int64_t numel) {
  for (std::int64_t i = threadIdx.x; i < numel; i += blockDim.x) sum[i] += values[i];
}

}  // namespace

cudaError_t launch_add_doubles(double* sum, const double* values, std::int64_t numel, cudaStream_t stream) {
  if (numel == 0) return cudaSuccess;
  add_doubles<<<1, 32, 0, stream>>>(sum, values, numel);
  return cudaGetLastError();
}

}  // namespace atl::cuda
