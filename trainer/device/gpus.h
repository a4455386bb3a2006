// The GPUs of this machine that this process may use, and devices on them; in a build without CUDA kernels there are
// none. One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "net/base/result.h"
#include "trainer/device/device_group.h"

namespace atl {

struct UsableGpu {
  int ordinal = 0;  // as CUDA counts those that CUDA_VISIBLE_DEVICES leaves
  std::string name;
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
};

// What a look at them came to.
struct GpuLook {
  std::vector<UsableGpu> usable;  // all of one kind, in the order of their ordinals
  // Some are there that should compute and cannot: a driver that is too old, a card that fails.
  bool amiss = false;
  std::string why;  // why none is usable, or not all that are there; empty: all are
};

class Gpus {
 public:
  virtual ~Gpus() = default;
  // Now: others take memory and give it back. A driver that hangs blocks.
  virtual GpuLook look() = 0;
  // A local rank on each. `timeout`: of a rank for the others. The error says what is missing and what brings it.
  virtual Result<std::unique_ptr<DeviceGroup>> devices(std::span<const UsableGpu> gpus,
                                                       std::chrono::seconds timeout) = 0;
};

// This machine's.
std::unique_ptr<Gpus> gpus_of_machine();

}  // namespace atl
