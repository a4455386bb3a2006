// checkpoints.list, config.get, config.set, diag.create: what lies in the agent's directories.
#include "app/agent/agent_config.h"
#include "app/agent/files/checkpoint_list.h"
#include "app/agent/files/diag_bundle.h"
#include "app/agent/gpu_presence.h"
#include "app/agent/methods/methods.h"
#include "app/config/config_queries.h"
#include "app/config/gpu_list.h"
#include "net/control/told.h"

namespace atl {

namespace {

// What is no list of GPUs set_config() refuses.
Status check_gpus(AgentControl& control, const nlohmann::json& params) {
  if (told::text(params, "key") != "island.gpus" || !params.contains("value")) return ok_status();
  const auto gpus = parse_gpu_list(told::text(params, "value"));
  return gpus.ok() && gpus->numbers ? check_gpus_exist(*gpus, control.list_gpus()) : ok_status();
}

}  // namespace

void add_file_methods(MethodTable& table, AgentControl& control) {
  const ConfigSources config = config_sources(control.home());
  table.add("checkpoints.list", [&control](const nlohmann::json&) -> Result<nlohmann::json> {
    ATOLL_ASSIGN_OR_RETURN(const auto checkpoints, list_checkpoints(control.home().island));
    return checkpoints_json(checkpoints, list_logged_rounds(control.home().island));
  });
  table.add("config.get", [config](const nlohmann::json& params) { return get_config(config, params); });
  table.add_slow("config.set", [&control, config](const nlohmann::json& params) -> Result<nlohmann::json> {
    ATOLL_RETURN_IF_ERROR(check_gpus(control, params));
    auto answer = set_config(config, params);
    if (answer.ok()) control.look_at_settings();
    return answer;
  });
  table.add("diag.create", [&control, config](const nlohmann::json& params) {
    return create_diagnostics(control.home(), config, to_json(control.board().state()), params);
  });
}

}  // namespace atl
