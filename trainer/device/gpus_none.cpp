#include "trainer/device/gpu_look.h"
#include "trainer/device/gpus.h"

namespace atl {
namespace {

constexpr const char* kNoKernels =
    "this program was built without what computes on GPUs: build it with ATOLL_GPU=yes ATOLL_CUDA_KERNELS=yes, which "
    "fetch what that needs";

class NoGpus final : public Gpus {
 public:
  GpuLook look() override {
    if (visible_gpus() == VisibleGpus::kNone) return none_allowed();
    return {.usable = {}, .amiss = kernel_has_driver(), .why = kNoKernels};
  }
  Result<std::unique_ptr<DeviceGroup>> devices(std::span<const UsableGpu>, std::chrono::seconds) override {
    return Error{ErrorCode::kNotFound, kNoKernels};
  }
};

}  // namespace

std::unique_ptr<Gpus> gpus_of_machine() { return std::make_unique<NoGpus>(); }

}  // namespace atl
