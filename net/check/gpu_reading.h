// What GPUs do now, as `atoll-gpu-probe sample` says it: a line of JSON each time, {"gpus": [...]} with the fields of
// the control protocol's gpu.sample (docs/control.md) but "index", which is the place in the list, or {"problem":
// TEXT}. Plain values; any thread.
#pragma once

#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "net/base/result.h"
#include "net/check/gpu_sample.h"

namespace atl {

nlohmann::json to_json(const std::vector<GpuSample>& gpus);
// The list of a line that came from a child process: bounded, and checked. kNotFound with the problem that it tells.
Result<std::vector<GpuSample>> parse_gpu_readings(std::string_view line);

}  // namespace atl
