// Local ranks that are threads of this process and compute on its processor.
#pragma once

#include <chrono>

#include "trainer/device/device_group.h"
#include "trainer/fsdp/shared_memory_communicator.h"

namespace atl {

class CpuDeviceGroup final : public DeviceGroup {
 public:
  CpuDeviceGroup(int world_size, int threads_per_rank, std::chrono::nanoseconds timeout);

  int world_size() const override { return group_.world_size(); }
  StepTraits traits() const override { return cpu_step_traits(threads_per_rank_); }
  std::unique_ptr<Device> device(LocalRank rank) override;
  void abort(const std::string& reason) noexcept override { communicators_.front()->abort(reason); }
  bool reset() override;

 private:
  const int threads_per_rank_;
  SharedMemoryGroup group_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
};

}  // namespace atl
