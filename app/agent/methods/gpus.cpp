// gpu.pause {gpu, for_seconds?}, gpu.resume {gpu}: one of the island's GPUs is left to others, and taken back. A
// trainer that runs is started again on those that are left and goes on with its work. Slow, for the driver is asked.
#include <fmt/format.h>

#include "app/agent/gpu_presence.h"
#include "app/agent/methods/methods.h"
#include "app/agent/trainer_gpus.h"
#include "net/base/unix_time.h"
#include "net/control/methods.h"

namespace atl {
namespace {

constexpr double kLongestGpuPause = 366.0 * 24 * 3600;

// Those of `list` that the machine has; without a driver that answers, all that are named.
GpuList those_here(const GpuList& list, const GpuFacts& gpu) {
  GpuList left = list;
  if (!gpu.devices.empty()) left.numbers = std::vector<unsigned>();
  for (unsigned i = 0; i < gpu.devices.size(); ++i) {
    if (list.contains(i)) left.numbers->push_back(i);
  }
  return left;
}

Result<GpuList> gpus_of_island(AgentControl& control, unsigned gpu, const GpuFacts& there) {
  ATOLL_ASSIGN_OR_RETURN(const JoinFile join, load_join_file(control.home().island.join_file()));
  if (join.device == DeviceChoice::kProcessor) {
    return Error{ErrorCode::kInvalidArgument,
                 "this island computes on its processor and uses no GPU (island.device); 'atoll pause' pauses it"};
  }
  if (gpu >= kMostGpus) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("a GPU is a number from 0 to {}", kMostGpus - 1)};
  }
  ATOLL_RETURN_IF_ERROR(check_gpus_exist(GpuList{{{gpu}}}, there));
  ATOLL_ASSIGN_OR_RETURN(const GpuList gpus, TrainerGpus::named_by(join));
  if (gpus.contains(gpu)) return gpus;
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("this island does not train on GPU {} (it may use {}; island.gpus says which)", gpu, gpus.text())};
}

Result<nlohmann::json> follow_gpus(AgentControl& control, const PausedGpus& paused, const GpuList& left) {
  // Followed also if it cannot be written down.
  const Status kept = save_paused_gpus(paused_gpus_file(control.home().state), paused);
  control.board().set_paused_gpus(paused);
  method::GpusTaken taken{.gpus = left.text(), .kept = kept.ok()};
  if (!kept.ok()) taken.warning = fmt::format("a restart of this machine forgets it: {}", kept.error().message);
  return encode_message(taken);
}

Result<nlohmann::json> pause_gpu(AgentControl& control, const nlohmann::json& json) {
  ATOLL_ASSIGN_OR_RETURN(const auto params, decode_message<method::GpuPause>(json));
  const std::int64_t now = unix_seconds_now();
  std::optional<std::int64_t> until;
  if (const auto& span = params.for_seconds) {
    if (!(*span > 0) || *span > kLongestGpuPause) {
      return Error{ErrorCode::kInvalidArgument, "for_seconds must be more than 0 and at most a year"};
    }
    until = now + static_cast<std::int64_t>(*span);
  }
  const GpuFacts there = control.list_gpus();
  ATOLL_ASSIGN_OR_RETURN(const GpuList gpus, gpus_of_island(control, params.gpu, there));
  PausedGpus paused = control.board().facts().paused_gpus.at(now);
  paused.pause(params.gpu, until);
  const GpuList left = those_here(gpus.without(paused.numbers()), there);
  if (left.numbers && left.numbers->empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("GPU {} is the last that this island trains on; 'atoll pause' frees it", params.gpu)};
  }
  return follow_gpus(control, paused, left);
}

Result<nlohmann::json> resume_gpu(AgentControl& control, const nlohmann::json& json) {
  ATOLL_ASSIGN_OR_RETURN(const auto params, decode_message<method::GpuResume>(json));
  PausedGpus paused = control.board().facts().paused_gpus.at(unix_seconds_now());
  if (!paused.resume(params.gpu)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("GPU {} is not paused; 'atoll status' names those that are", params.gpu)};
  }
  ATOLL_ASSIGN_OR_RETURN(const JoinFile join, load_join_file(control.home().island.join_file()));
  ATOLL_ASSIGN_OR_RETURN(const GpuList gpus, TrainerGpus::named_by(join));
  return follow_gpus(control, paused, those_here(gpus.without(paused.numbers()), control.list_gpus()));
}

}  // namespace

void add_gpu_methods(MethodTable& table, AgentControl& control) {
  table.add_slow(method::GpuPause::kName,
                 [&control](const nlohmann::json& params) { return pause_gpu(control, params); });
  table.add_slow(method::GpuResume::kName,
                 [&control](const nlohmann::json& params) { return resume_gpu(control, params); });
}

}  // namespace atl
