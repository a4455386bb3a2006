// Local ranks that compute on GPUs: one each, which meet over NCCL, or several on one, which meet over copies on it.
// Which, the list of devices says.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/base/gpu_libraries.h"
#include "net/base/mutex.h"
#include "net/base/result.h"
#include "trainer/device/cublas_lt.h"
#include "trainer/device/cuda_attention.h"
#include "trainer/device/cuda_collectives.h"
#include "trainer/device/device_group.h"

namespace atl {

struct CudaDevices {
  std::vector<int> ordinals;  // GPU of each rank: all different, or all the same
  // Of a rank for the others: longer than the longest program runs.
  std::chrono::nanoseconds timeout = std::chrono::seconds(600);
  bool one_for_all() const { return ordinals.size() > 1 && ordinals[0] == ordinals[1]; }
  Status validate() const;
};

// What is opened when the program runs.
struct CudaLibraries {
  CublasLtApi cublas;
  std::optional<NcclApi> nccl;  // where several GPUs are used
  bool cudnn = false;
  std::string attention = "atoll's own kernels";  // and why
  // On the rank's thread, with its GPU current.
  std::function<std::unique_ptr<CudaAttention>()> make_attention = make_own_attention;
};
Result<CudaLibraries> open_cuda_libraries(const CudaDevices& devices,
                                          const std::filesystem::path& libtorch = libtorch_directory());

class CudaDeviceGroup final : public DeviceGroup {
 public:
  // Throws std::runtime_error when there is no such GPU.
  CudaDeviceGroup(CudaDevices devices, CudaLibraries libraries);

  int world_size() const override { return static_cast<int>(devices_.ordinals.size()); }
  StepTraits traits() const override;
  std::unique_ptr<Device> device(LocalRank rank) override;
  void abort(const std::string& reason) noexcept override;
  bool reset() override;

 private:
  std::shared_ptr<CudaClique> make_clique() const;
  std::shared_ptr<CudaClique> clique() const;

  const CudaDevices devices_;
  const CudaLibraries libraries_;
  std::unique_ptr<SharedDevice> shared_;  // where one GPU is for all
  mutable Mutex mutex_;
  std::shared_ptr<CudaClique> clique_ ATOLL_GUARDED_BY(mutex_);
};

// The libraries opened, the group made of them. The error says what is missing and what brings it.
Result<std::unique_ptr<DeviceGroup>> make_cuda_device_group(const CudaDevices& devices);

}  // namespace atl
