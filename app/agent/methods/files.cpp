// checkpoints.list, config.get, config.set, diag.create: what lies in the agent's directories.
#include "app/agent/agent_config.h"
#include "app/agent/files/checkpoint_list.h"
#include "app/agent/files/diag_bundle.h"
#include "app/agent/methods/methods.h"
#include "app/config/config_queries.h"

namespace atl {

void add_file_methods(MethodTable& table, AgentControl& control) {
  const ConfigSources config = config_sources(control.home());
  table.add("checkpoints.list", [&control](const nlohmann::json&) -> Result<nlohmann::json> {
    ATOLL_ASSIGN_OR_RETURN(const auto checkpoints, list_checkpoints(control.home().island));
    return checkpoints_json(checkpoints, list_logged_rounds(control.home().island));
  });
  table.add("config.get", [config](const nlohmann::json& params) { return get_config(config, params); });
  table.add("config.set", [config](const nlohmann::json& params) { return set_config(config, params); });
  table.add("diag.create", [&control, config](const nlohmann::json& params) {
    return create_diagnostics(control.home(), config, to_json(control.board().state()), params);
  });
}

}  // namespace atl
