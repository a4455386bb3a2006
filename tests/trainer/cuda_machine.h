// A machine with GPUs for tests, none of which is there: a runtime, a cuBLASLt and an NCCL in host memory, whose
// streams work late and out of step. Kernels are the processor's; the products, as cuBLASLt's descriptors have them.
#pragma once

#include <QtTest>
#include <functional>
#include <memory>

#include "tests/fakes/fake_cublas_lt.h"
#include "tests/fakes/fake_cuda_runtime.h"
#include "tests/fakes/fake_nccl.h"
#include "trainer/device/cuda_device.h"
#include "trainer/device/cuda_device_group.h"

namespace atl::test {

// All of a GPU machine that the device sees.
struct CudaMachine {
  explicit CudaMachine(FakeCudaOptions options = {}) : cuda(options) {}
  FakeCuda cuda;
  FakeCublasLt cublas;
  FakeNccl nccl{7};

  std::unique_ptr<DeviceGroup> group(std::vector<int> ordinals) {
    const CudaDevices devices{.ordinals = std::move(ordinals), .timeout = std::chrono::seconds(120)};
    CudaLibraries libraries;
    libraries.cublas = FakeCublasLt::api();
    libraries.nccl = FakeNccl::api();
    return std::make_unique<CudaDeviceGroup>(devices, std::move(libraries));
  }
  std::unique_ptr<CudaDevice> device() {
    return std::make_unique<CudaDevice>(0, LocalRank{0}, FakeCublasLt::api(), make_own_attention(),
                                        [] { return std::shared_ptr<CudaClique>(make_lone_clique()); });
  }
};

inline QString failure_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

}  // namespace atl::test
