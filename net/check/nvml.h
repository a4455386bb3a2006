// What NVIDIA's management library says of the cards. Loaded at run time, with declarations of our own: machines
// without it, and builds without a CUDA toolkit, need nothing. Called by atoll-gpu-probe alone, for it may hang. One
// thread.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "net/check/facts.h"
#include "net/check/gpu_power.h"
#include "net/check/gpu_reading.h"

namespace atl {

// `library`: empty for the system's libnvidia-ml.so.1.
GpuFacts read_nvml(const std::string& library = {});
// Says what the cards do, at once and then each `period`, until `tell` returns false. The problem that ended it, or
// that kept it from beginning; empty when `tell` did.
std::string watch_gpus(std::chrono::milliseconds period,
                       const std::function<bool(const std::vector<GpuReading>& gpus)>& tell,
                       const std::string& library = {});
// The limits that were not set, a line for a person each.
std::vector<std::string> limit_power(const std::vector<GpuPower>& wanted, const std::string& library = {});

}  // namespace atl
