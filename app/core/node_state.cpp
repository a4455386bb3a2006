#include "app/core/node_state.h"

#include "net/control/json_fields.h"

namespace atl {
namespace {

constexpr std::size_t kMaxGpus = 64;

Status read(const nlohmann::json& json, GpuSample& gpu) {
  JsonFields fields(json, "a GPU's sample");
  std::optional<std::string> name, throttling;
  std::optional<std::uint32_t> index;
  fields.read("index", index).read("name", name).read("throttling", throttling).read("utilisation", gpu.utilisation);
  fields.read("memory_bytes", gpu.memory_bytes).read("memory_total_bytes", gpu.memory_total_bytes);
  fields.read("power_watts", gpu.power_watts).read("power_limit_watts", gpu.power_limit_watts);
  fields.read("temperature_celsius", gpu.temperature_celsius).read("sm_clock_hertz", gpu.sm_clock_hertz);
  fields.read("ecc_errors", gpu.ecc_errors).read("nvlink_bytes_per_second", gpu.nvlink_bytes_per_second);
  gpu.index = index.value_or(gpu.index);
  gpu.name = name.value_or("");
  gpu.throttling = throttling.value_or("");
  return fields.status();
}

Status read(const nlohmann::json& json, TrainerExitView& exit) {
  JsonFields fields(json, "the trainer's last exit");
  return fields.read("cause", exit.cause).read("text", exit.text).read("unix_seconds", exit.time).status();
}

Status read(const nlohmann::json& json, AgentView& agent) {
  JsonFields fields(json, "the agent's part of the state");
  std::optional<std::string> version, wish, followed, warning;
  std::optional<std::uint64_t> restarts;
  fields.read("version", version).read("wish", wish).read("followed", followed).read("warning", warning);
  fields.read("pid", agent.pid).read("restarts", restarts).read("paused_until_unix_seconds", agent.paused_until);
  fields.read("restart_in_seconds", agent.restart_in_seconds).read("heard_seconds_ago", agent.heard_seconds_ago);
  ATOLL_RETURN_IF_ERROR(fields.status());
  agent.version = version.value_or("");
  agent.wish = wish.value_or("");
  agent.followed = followed.value_or("");
  agent.warning = warning.value_or("");
  agent.restarts = restarts.value_or(0);
  const auto exit = json.find("last_exit");
  if (exit == json.end() || exit->is_null()) return ok_status();
  return read(*exit, agent.last_exit.emplace());
}

}  // namespace

Result<std::vector<GpuSample>> gpu_samples_from_json(const nlohmann::json& list) {
  if (!list.is_array() || list.size() > kMaxGpus) {
    return Error{ErrorCode::kProtocol, "\"gpus\" is not a list within bounds"};
  }
  std::vector<GpuSample> gpus;
  for (const nlohmann::json& gpu : list) {
    GpuSample sample;
    sample.index = static_cast<std::uint32_t>(gpus.size());
    ATOLL_RETURN_IF_ERROR(read(gpu, sample));
    gpus.push_back(std::move(sample));
  }
  return gpus;
}

Result<NodeState> node_state_from_json(const nlohmann::json& json) {
  NodeState state;
  ATOLL_ASSIGN_OR_RETURN(state.island, IslandState::from_json(json));
  JsonFields fields(json, "the state");
  fields.read("mfu", state.mfu).read("disk_free_bytes", state.disk_free_bytes);
  fields.read("learning_rate", state.learning_rate).read("gradient_norm", state.gradient_norm);
  ATOLL_RETURN_IF_ERROR(fields.status());
  if (const auto agent = json.find("agent"); agent != json.end() && !agent->is_null()) {
    ATOLL_RETURN_IF_ERROR(read(*agent, state.agent));
  }
  if (const auto gpus = json.find("gpus"); gpus != json.end() && !gpus->is_null()) {
    ATOLL_ASSIGN_OR_RETURN(state.gpus, gpu_samples_from_json(*gpus));
  }
  return state;
}

}  // namespace atl
