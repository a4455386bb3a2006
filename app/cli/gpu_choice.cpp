#include "app/cli/gpu_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/cli/own_programs.h"
#include "app/cli/text.h"
#include "app/config/gpu_list.h"
#include "net/check/gpu_probe.h"

namespace atl {

Status check_gpus_exist(const std::string& gpu_list, const AbortSignal& interrupt) {
  ATOLL_ASSIGN_OR_RETURN(const GpuList chosen, parse_gpu_list(gpu_list));
  if (!chosen.numbers || chosen.numbers->empty()) return ok_status();
  GpuProbe probe;
  ATOLL_ASSIGN_OR_RETURN(probe.program, locate_gpu_probe());
  const GpuFacts gpu = list_gpus(probe, interrupt);
  if (interrupt.raised()) return Error{ErrorCode::kAborted, "interrupted"};
  if (gpu.devices.empty() && gpu.driver_found) return ok_status();
  const auto missing =
      std::ranges::find_if(*chosen.numbers, [&](unsigned number) { return std::size_t{number} >= gpu.devices.size(); });
  if (missing == chosen.numbers->end()) return ok_status();
  const std::string there = gpu.devices.empty()       ? "no GPU was found"
                            : gpu.devices.size() == 1 ? "it has one, GPU 0"
                                                      : fmt::format("it has {}, numbered from 0",
                                                                    format_number_of(gpu.devices.size(), "GPU"));
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("this machine has no GPU {} ({}; nvidia-smi lists them); say all, none, or those that are "
                           "there",
                           *missing, there)};
}

}  // namespace atl
