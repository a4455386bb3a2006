#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <numeric>

#include "trainer/device/cuda_device_group.h"
#include "trainer/device/gpus.h"

namespace atl {
namespace {

Error failed(const char* what, cudaError_t error) {
  return Error{ErrorCode::kNotFound, fmt::format("{}: {}", what, cudaGetErrorString(error))};
}

}  // namespace

Result<std::vector<UsableGpu>> usable_gpus() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaErrorInsufficientDriver) {
    return Error{ErrorCode::kNotFound,
                 "this machine has no NVIDIA driver, or one that is too old for CUDA 13: install 580 or newer"};
  }
  if (error != cudaSuccess) return failed("no GPU", error);
  std::vector<UsableGpu> gpus;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    cudaDeviceProp properties{};
    std::size_t free_bytes = 0, all = 0;
    cudaError_t asked = cudaSetDevice(ordinal);
    if (asked == cudaSuccess) asked = cudaGetDeviceProperties(&properties, ordinal);
    if (asked == cudaSuccess) asked = cudaMemGetInfo(&free_bytes, &all);
    if (asked != cudaSuccess) return failed(fmt::format("GPU {}", ordinal).c_str(), asked);
    gpus.push_back({ordinal, properties.name, free_bytes});
  }
  if (gpus.empty()) return Error{ErrorCode::kNotFound, "no GPU: there is none that may be used (island.gpus)"};
  return gpus;
}

Result<std::unique_ptr<DeviceGroup>> make_gpu_devices(int count, std::chrono::seconds timeout) {
  CudaDevices devices{.ordinals = std::vector<int>(static_cast<std::size_t>(count)), .timeout = timeout};
  std::iota(devices.ordinals.begin(), devices.ordinals.end(), 0);
  try {
    return make_cuda_device_group(devices);
  } catch (const std::exception& error) {
    return Error{ErrorCode::kNotFound, error.what()};
  }
}

}  // namespace atl
