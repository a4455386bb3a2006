// What GPUs do now, as `atoll-gpu-probe sample` says it: a line of JSON each time, {"gpus": [...]} with the fields of
// the control protocol's gpu.sample (docs/control.md), or {"problem": TEXT}. Plain values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "net/base/result.h"

namespace atl {

struct GpuReading {  // what the card or its driver does not say is empty
  std::string name;
  std::optional<double> utilisation;  // 0 to 1, of the last moments
  std::optional<double> memory_bytes, memory_total_bytes;
  std::optional<double> power_watts, power_limit_watts;
  std::optional<double> temperature_celsius;
  std::optional<double> sm_clock_hertz;
  std::string throttling;                   // why it is slower than it could be, "heat, power cap"; empty: it is not
  std::optional<std::uint64_t> ecc_errors;  // that could not be corrected, since the driver was loaded
  std::optional<double> nvlink_bytes_per_second;  // both ways, since the reading before
};

nlohmann::json to_json(const std::vector<GpuReading>& gpus);
// The list of a line that came from a child process: bounded, and checked. kNotFound with the problem that it tells.
Result<std::vector<GpuReading>> parse_gpu_readings(std::string_view line);

}  // namespace atl
