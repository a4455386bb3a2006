#include <stdexcept>

#include "tests/gpu/machine.h"
#include "trainer/device/cuda_check.h"

namespace atl::gpu {

CudaLibraries libraries(const CudaDevices& devices) {
  auto opened = open_cuda_libraries(devices);
  if (!opened.ok()) throw std::runtime_error(opened.error().message);
  return std::move(opened).value();
}

std::uint64_t used_bytes() {
  std::size_t unused = 0, total = 0;
  check_cuda(cudaMemGetInfo(&unused, &total), "cudaMemGetInfo");
  return total - unused;
}

bool fake() { return false; }

}  // namespace atl::gpu
