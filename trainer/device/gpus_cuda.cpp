#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdlib>

#include "trainer/device/cuda_device_group.h"
#include "trainer/device/gpu_look.h"
#include "trainer/device/gpus.h"

namespace atl {
namespace {

// Of an answer that is no list of GPUs.
GpuLook no_list(cudaError_t error) {
  int driver = 0;  // the CUDA that it knows, 12020: 12.2; 0: there is none
  (void)cudaDriverGetVersion(&driver);
  (void)cudaGetLastError();
  if (error == cudaErrorInsufficientDriver && driver > 0) {
    return {.usable = {},
            .amiss = true,
            .why = fmt::format("the NVIDIA driver knows CUDA {}.{} and is too old for CUDA 13: install 580 or newer",
                               driver / 1000, driver % 1000 / 10)};
  }
  if (error == cudaErrorInsufficientDriver || error == cudaErrorStubLibrary) {
    return {.usable = {}, .amiss = kernel_has_driver(), .why = "CUDA finds no NVIDIA driver on this machine"};
  }
  if (error == cudaErrorNoDevice || error == cudaSuccess) {
    if (visible_gpus() != VisibleGpus::kSome) return {.usable = {}, .amiss = false, .why = "this machine has no GPU"};
    return {.usable = {},
            .amiss = kernel_has_driver(),
            .why = fmt::format("none of the GPUs that may be used (island.gpus, CUDA_VISIBLE_DEVICES={}) is there",
                               std::getenv("CUDA_VISIBLE_DEVICES"))};
  }
  return {
      .usable = {},
      .amiss = kernel_has_driver(),
      .why = fmt::format("CUDA cannot ask the driver for GPUs: {}; run 'nvidia-smi', and if it fails too, reinstall "
                         "the driver or restart the machine",
                         cudaGetErrorString(error))};
}

AskedGpu ask(int ordinal) {
  AskedGpu asked;
  asked.gpu.ordinal = ordinal;
  cudaDeviceProp properties{};
  std::size_t free_bytes = 0, all = 0;
  cudaError_t error = cudaGetDeviceProperties(&properties, ordinal);
  if (error == cudaSuccess) {
    asked.gpu.name = properties.name;
    error = cudaSetDevice(ordinal);
  }
  if (error == cudaSuccess) error = cudaMemGetInfo(&free_bytes, &all);
  asked.gpu.free_bytes = free_bytes;
  asked.gpu.total_bytes = all;
  if (error == cudaSuccess) return asked;
  (void)cudaGetLastError();
  asked.trouble = fmt::format("{}; see 'atoll check'", cudaGetErrorString(error));
  return asked;
}

class CudaGpus final : public Gpus {
 public:
  GpuLook look() override {
    if (visible_gpus() == VisibleGpus::kNone) return none_allowed();
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0) return no_list(error);
    std::vector<AskedGpu> asked;
    for (int ordinal = 0; ordinal < count; ++ordinal) asked.push_back(ask(ordinal));
    return choose_alike(asked);
  }

  Result<std::unique_ptr<DeviceGroup>> devices(std::span<const UsableGpu> gpus, std::chrono::seconds timeout) override {
    CudaDevices devices{.ordinals = {}, .timeout = timeout};
    for (const UsableGpu& gpu : gpus) devices.ordinals.push_back(gpu.ordinal);
    try {
      return make_cuda_device_group(devices);
    } catch (const std::exception& error) {
      return Error{ErrorCode::kNotFound, error.what()};
    }
  }
};

}  // namespace

std::unique_ptr<Gpus> gpus_of_machine() { return std::make_unique<CudaGpus>(); }

}  // namespace atl
