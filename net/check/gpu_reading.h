// What GPUs do now, and who uses them, as `atoll-gpu-probe sample` says it: a line of JSON each time, {"gpus": [...]}
// with the fields of the control protocol's gpu.sample (docs/control.md) but "index", which is the place in the list,
// and "processes": [{"pid": 7, "memory_bytes": 1e9}], or {"problem": TEXT}. Plain values; any thread.
#pragma once

#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "net/base/result.h"
#include "net/check/gpu_sample.h"

namespace atl {

inline constexpr std::size_t kMostGpuProcesses = 32;  // of a card that are told

struct GpuProcess {  // that has something on the card: computes there, or draws
  std::uint32_t pid = 0;
  std::optional<double> memory_bytes = {};  // of the card's; empty: the driver does not say
  bool operator==(const GpuProcess&) const = default;
};

struct GpuReading {
  GpuSample now = {};
  std::vector<GpuProcess> processes = {};
};

nlohmann::json to_json(const std::vector<GpuReading>& gpus);
// The list of a line that came from a child process: bounded, and checked. kNotFound with the problem that it tells.
Result<std::vector<GpuReading>> parse_gpu_readings(std::string_view line);

}  // namespace atl
