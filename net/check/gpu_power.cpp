#include "net/check/gpu_power.h"

#include <fmt/format.h>

#include <charconv>

#include "net/check/gpu_bounds.h"
#include "net/wire/json_archive.h"

namespace atl {
namespace {

constexpr double kMostWatts = 10'000;

template <class T>
bool read(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string to_string(const GpuPower& power) { return fmt::format("{}={}", power.gpu, power.watts); }

Result<GpuPower> parse_gpu_power(std::string_view text) {
  GpuPower power;
  const auto sign = text.find('=');
  const bool read_both = sign != std::string_view::npos && read(text.substr(0, sign), power.gpu) &&
                         read(text.substr(sign + 1), power.watts);
  if (read_both && power.gpu < kMaxGpus && power.watts > 0 && power.watts <= kMostWatts) return power;
  return Error{ErrorCode::kInvalidArgument, fmt::format("'{}' is no power limit like 0=250", text.substr(0, 64))};
}

std::vector<std::string> limit_gpu_power(const GpuProbe& probe, const std::vector<GpuPower>& wanted,
                                         const AbortSignal& abort) {
  std::vector<std::string> arguments{"limit"};
  for (const GpuPower& power : wanted) arguments.push_back(to_string(power));
  if (!probe.nvml.empty()) arguments.insert(arguments.end(), {"--nvml", probe.nvml});
  std::vector<std::string> problems;
  const ProbeChild child{probe.program, std::move(arguments), Deadline::after(probe.list_time)};
  const Status ended = run_probe_child(
      child, abort, [&](std::string_view line) { problems.push_back(printable(std::string(line), kMaxPersonText)); });
  if (!ended.ok()) problems.push_back(fmt::format("the GPU probe: {}", ended.error().message));
  return problems;
}

}  // namespace atl
