#include "trainer/device/cpu_device_group.h"

#include "trainer/device/cpu_device.h"
#include "trainer/device/cpu_library.h"

namespace atl {

CpuDeviceGroup::CpuDeviceGroup(int world_size, int threads_per_rank, std::chrono::nanoseconds timeout)
    : threads_per_rank_(threads_per_rank), group_(world_size, timeout) {
  for (int rank = 0; rank < world_size; ++rank) communicators_.push_back(group_.communicator(LocalRank{rank}));
}

std::unique_ptr<Device> CpuDeviceGroup::device(LocalRank rank) {
  set_cpu_threads(threads_per_rank_);
  return std::make_unique<CpuDevice>(*communicators_[static_cast<std::size_t>(rank.value)], threads_per_rank_);
}

bool CpuDeviceGroup::reset() {
  group_.reset();
  return true;
}

}  // namespace atl
