// What a GPU does at one moment: read from its driver by the probe, passed on by the agent, shown by views. Plain
// values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace atl {

struct GpuSample {          // what the card or its driver does not say is empty
  std::uint32_t index = 0;  // as nvidia-smi counts; where nobody says it, its place in the list
  std::string name = {};
  std::optional<double> utilisation = {};  // 0 to 1, of the last moments
  std::optional<double> memory_bytes = {}, memory_total_bytes = {};
  std::optional<double> power_watts = {}, power_limit_watts = {};
  std::optional<double> temperature_celsius = {};
  std::optional<double> sm_clock_hertz = {};
  std::string throttling = {};  // why it is slower than it could be, "heat, power cap"; empty: it is not
  std::optional<std::uint64_t> ecc_errors = {};        // that could not be corrected, since the driver was loaded
  std::optional<double> nvlink_bytes_per_second = {};  // both ways, since the sample before

  static constexpr std::uint32_t kNotSaid = UINT32_MAX;
};

}  // namespace atl
