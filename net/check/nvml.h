// What NVIDIA's management library says of the cards. Loaded at run time, with declarations of our own: machines
// without it, and builds without a CUDA toolkit, need nothing. Called by atoll-gpu-probe alone, for it may hang. One
// thread.
#pragma once

#include <string>

#include "net/check/facts.h"

namespace atl {

// `library`: empty for the system's libnvidia-ml.so.1.
GpuFacts read_nvml(const std::string& library = {});

}  // namespace atl
