#include "trainer/device/cuda_device_group.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "trainer/device/cuda_check.h"
#include "trainer/device/cuda_device.h"

namespace atl {
namespace {

// Without a driver CUDA says cudaErrorInsufficientDriver or cudaErrorNoDevice.
int count_gpus() {
  int count = 0;
  check_cuda(cudaGetDeviceCount(&count), "ask for GPUs: cudaGetDeviceCount");
  return count;
}

}  // namespace

Status CudaDevices::validate() const {
  if (ordinals.empty()) return Error{ErrorCode::kInvalidArgument, "no GPU was named"};
  if (std::ranges::min(ordinals) < 0) return Error{ErrorCode::kInvalidArgument, "GPUs are counted from 0"};
  const std::size_t different = std::set<int>(ordinals.begin(), ordinals.end()).size();
  if (different != 1 && different != ordinals.size()) {
    return Error{ErrorCode::kInvalidArgument, "either each local rank has a GPU of its own, or all share one"};
  }
  return ok_status();
}

Result<CudaLibraries> open_cuda_libraries(const CudaDevices& devices, const std::filesystem::path& libtorch) {
  ATOLL_RETURN_IF_ERROR(devices.validate());
  CudaLibraries libraries;
  ATOLL_ASSIGN_OR_RETURN(libraries.cublas, open_cublas_lt(libtorch));
  if (devices.ordinals.size() > 1 && !devices.one_for_all()) {
    ATOLL_ASSIGN_OR_RETURN(libraries.nccl, open_nccl(libtorch));
  }
  const Status cudnn = cudnn_attention_loads(libtorch);
  libraries.cudnn = cudnn.ok();
  if (!cudnn.ok()) {
    libraries.attention = fmt::format("atoll's own kernels: {}", cudnn.error().message);
    return libraries;
  }
  libraries.attention = "cuDNN's fused kernels, where they take a shape";
  libraries.make_attention = [libtorch] {
    auto made = make_cudnn_attention(make_own_attention(), libtorch);
    if (!made.ok()) throw std::runtime_error(made.error().message);
    return std::move(made).value();
  };
  return libraries;
}

CudaDeviceGroup::CudaDeviceGroup(CudaDevices devices, CudaLibraries libraries)
    : devices_(std::move(devices)), libraries_(std::move(libraries)) {
  const int most = std::ranges::max(devices_.ordinals);
  if (const int count = count_gpus(); most >= count) {
    throw std::runtime_error(fmt::format("GPU {} is asked for, and there are {}", most, count));
  }
  if (devices_.one_for_all()) {
    check_cuda(cudaSetDevice(most), [&] { return fmt::format("use GPU {}: cudaSetDevice", most); });
    shared_ = make_cuda_shared_device();
  }
  clique_ = make_clique();
}

StepTraits CudaDeviceGroup::traits() const {
  return cuda_step_traits(libraries_.cudnn ? GpuAttention::kCudnn : GpuAttention::kOwn,
                          /*adds_by_scratch=*/!devices_.one_for_all());
}

std::shared_ptr<CudaClique> CudaDeviceGroup::make_clique() const {
  if (world_size() == 1) return make_lone_clique();
  if (devices_.one_for_all()) return make_shared_clique(*shared_, world_size(), devices_.timeout);
  if (!libraries_.nccl) throw std::logic_error("several GPUs need NCCL");
  return make_nccl_clique(*libraries_.nccl, world_size(), {.wait = devices_.timeout});
}

std::shared_ptr<CudaClique> CudaDeviceGroup::clique() const {
  const MutexLock lock(mutex_);
  return clique_;
}

std::unique_ptr<Device> CudaDeviceGroup::device(LocalRank rank) {
  const int ordinal = devices_.ordinals[static_cast<std::size_t>(rank.value)];
  check_cuda(cudaSetDevice(ordinal), [&] { return fmt::format("use GPU {}: cudaSetDevice", ordinal); });
  auto attention = libraries_.make_attention();
  if (rank.value == 0) spdlog::info("attention on the GPU: {}", libraries_.attention);
  return std::make_unique<CudaDevice>(ordinal, rank, libraries_.cublas, std::move(attention),
                                      [this] { return clique(); });
}

void CudaDeviceGroup::abort(const std::string& reason) noexcept { clique()->abort(reason); }

// The old one stays until each device has let go of it, which its reset() does when what it enqueued is done.
bool CudaDeviceGroup::reset() {
  try {
    std::shared_ptr<CudaClique> made = make_clique();
    const MutexLock lock(mutex_);
    clique_ = std::move(made);
    return true;
  } catch (const std::exception& error) {
    spdlog::error("the local ranks cannot meet again: {}", error.what());
    return false;
  }
}

Result<std::unique_ptr<DeviceGroup>> make_cuda_device_group(const CudaDevices& devices) {
  ATOLL_ASSIGN_OR_RETURN(CudaLibraries libraries, open_cuda_libraries(devices));
  try {
    return std::unique_ptr<DeviceGroup>(std::make_unique<CudaDeviceGroup>(devices, std::move(libraries)));
  } catch (const std::exception& error) {
    return Error{ErrorCode::kInternal, error.what()};
  }
}

}  // namespace atl
