#include "trainer/device/gpus.h"

namespace atl {
namespace {

Error no_kernels() {
  return Error{ErrorCode::kNotFound,
               "this program was built without what computes on GPUs: build it with ATOLL_GPU=yes "
               "ATOLL_CUDA_KERNELS=yes, which fetch what that needs"};
}

}  // namespace

Result<std::vector<UsableGpu>> usable_gpus() { return no_kernels(); }
Result<std::unique_ptr<DeviceGroup>> make_gpu_devices(int, std::chrono::seconds) { return no_kernels(); }

}  // namespace atl
