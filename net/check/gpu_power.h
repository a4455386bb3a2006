// The power limits of GPUs, set by `atoll-gpu-probe limit` in a child process, for whoever loads NVML may hang and
// holds the driver. Setting them needs root.
#pragma once

#include <string>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/result.h"
#include "net/check/gpu_probe.h"

namespace atl {

struct GpuPower {
  unsigned gpu = 0;  // as NVML counts
  double watts = 0;
  bool operator==(const GpuPower&) const = default;
};

// "3=250" and back, as the probe's arguments and the agent's file have it.
std::string to_string(const GpuPower& power);
Result<GpuPower> parse_gpu_power(std::string_view text);

// The limits that were not set, a line for a person each: "GPU 0: Insufficient Permissions". Blocks; any thread that
// lives as long as the call.
std::vector<std::string> limit_gpu_power(const GpuProbe& probe, const std::vector<GpuPower>& wanted,
                                         const AbortSignal& abort);

}  // namespace atl
