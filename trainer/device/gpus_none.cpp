#include "trainer/device/gpus.h"

namespace atl {
namespace {

Error no_kernels() {
  return Error{ErrorCode::kNotFound,
               "this program was built without CUDA kernels: build it where CUDA's nvcc is, or with "
               "ATOLL_CUDA_KERNELS=yes, which fetches it"};
}

}  // namespace

Result<std::vector<UsableGpu>> usable_gpus() { return no_kernels(); }
Result<std::unique_ptr<DeviceGroup>> make_gpu_devices(int, std::chrono::seconds) { return no_kernels(); }

}  // namespace atl
