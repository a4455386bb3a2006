#include "app/agent/gpu_presence.h"

#include <fmt/format.h>

#include <algorithm>

namespace atl {

Status check_gpus_exist(const GpuList& chosen, const GpuFacts& gpu) {
  if (!chosen.numbers || chosen.numbers->empty()) return ok_status();
  if (gpu.devices.empty() && gpu.driver_found) return ok_status();
  const auto missing =
      std::ranges::find_if(*chosen.numbers, [&](unsigned number) { return std::size_t{number} >= gpu.devices.size(); });
  if (missing == chosen.numbers->end()) return ok_status();
  const std::string there = gpu.devices.empty() ? "no GPU was found"
                            : gpu.devices.size() == 1
                                ? "it has one, GPU 0"
                                : fmt::format("it has {} GPUs, numbered from 0", gpu.devices.size());
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("this machine has no GPU {} ({}; nvidia-smi lists them); say all, none, or those that are "
                           "there",
                           *missing, there)};
}

}  // namespace atl
