// GPUs that a test makes up: what each look says, and devices that are this processor's.
#pragma once

#include <deque>
#include <functional>
#include <utility>

#include "trainer/device/cpu_device_group.h"
#include "trainer/device/gpus.h"

namespace atl::test {

inline UsableGpu fake_gpu(int ordinal, std::uint64_t free_bytes, std::string name = "NVIDIA H100 80GB HBM3") {
  return {ordinal, std::move(name), free_bytes, 80'000'000'000};
}

class FakeGpus final : public Gpus {
 public:
  // The last look is said again and again.
  explicit FakeGpus(std::deque<GpuLook> looks) : looks_(std::move(looks)) {}

  GpuLook look() override {
    ++looked;
    if (on_look) on_look();
    const GpuLook now = looks_.front();
    if (looks_.size() > 1) looks_.pop_front();
    return now;
  }
  Result<std::unique_ptr<DeviceGroup>> devices(std::span<const UsableGpu> gpus, std::chrono::seconds timeout) override {
    ++made;
    if (made == fails_at) return Error{ErrorCode::kInternal, "out of memory"};
    if (made_of) return made_of(gpus);
    return std::unique_ptr<DeviceGroup>(std::make_unique<CpuDeviceGroup>(static_cast<int>(gpus.size()), 1, timeout));
  }

  std::function<void()> on_look = {};
  int looked = 0, made = 0;
  int fails_at = 0;  // from 1; 0: never
  std::function<Result<std::unique_ptr<DeviceGroup>>(std::span<const UsableGpu>)> made_of = {};

 private:
  std::deque<GpuLook> looks_;
};

}  // namespace atl::test
