// What NVIDIA's management library says of the cards. Loaded at run time, with declarations of our own: machines
// without it, and builds without a CUDA toolkit, need nothing. Called by atoll-gpu-probe alone, for it may hang. One
// thread.
#pragma once

#include <string>
#include <vector>

#include "net/check/facts.h"
#include "net/check/gpu_power.h"

namespace atl {

// `library`: empty for the system's libnvidia-ml.so.1.
GpuFacts read_nvml(const std::string& library = {});
// The limits that were not set, a line for a person each.
std::vector<std::string> limit_power(const std::vector<GpuPower>& wanted, const std::string& library = {});

}  // namespace atl
