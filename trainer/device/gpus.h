// The GPUs that this process may use, and devices on them; in a build without CUDA kernels there are none. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/base/result.h"
#include "trainer/device/device_group.h"

namespace atl {

struct UsableGpu {
  int ordinal = 0;  // as CUDA counts those that CUDA_VISIBLE_DEVICES leaves
  std::string name;
  std::uint64_t free_bytes = 0;
};

// At least one; the error says why there is none: no driver, no card, no kernels in this build.
Result<std::vector<UsableGpu>> usable_gpus();

// A local rank on each of the first `count`. `timeout`: of a rank for the others.
Result<std::unique_ptr<DeviceGroup>> make_gpu_devices(int count, std::chrono::seconds timeout);

}  // namespace atl
