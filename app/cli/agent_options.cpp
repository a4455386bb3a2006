#include "app/cli/agent_options.h"

#include "app/agent/agent_config.h"
#include "app/cli/check_this_node.h"
#include "app/cli/own_programs.h"

namespace atl {

Result<AgentOptions> agent_options(const AgentHome& home, const ConfigSources& sources, const Config& config) {
  AgentOptions options;
  options.home = home;
  ATOLL_RETURN_IF_ERROR(apply_config(config, options));
  options.read_config = [sources] { return Config::load(sources); };
  ATOLL_ASSIGN_OR_RETURN(options.trainer, locate_trainer());
  const auto probe = locate_gpu_probe();
  if (!probe.ok() && (options.gpu_limits.power_watts || options.rules.ask_gpus())) return probe.error();
  if (probe.ok()) options.gpu_limits.probe.program = *probe;
  options.check_node = node_check_of(home);
  return options;
}

}  // namespace atl
