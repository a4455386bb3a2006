// What the owner's configuration means for an agent and for joining. Reads files; any thread.
#pragma once

#include "app/agent/agent.h"
#include "app/agent/join_run.h"
#include "app/config/config.h"

namespace atl {

ConfigSources config_sources(const AgentHome& home);

StoreSettings store_settings(const Config& config);

// What limits.upload, limits.download and theirs by hours say.
Result<CapRules> cap_rules(const Config& config);
Result<OwnersRulesSettings> owners_rules(const Config& config);
std::optional<double> gpu_power_limit(const Config& config);  // watts of each; empty: as the driver has it
// Rules, limits and sizes. The agent's own flags are set after it.
Status apply_config(const Config& config, AgentOptions& options);
// What the request leaves open.
void apply_config(const Config& config, JoinRequest& request);

}  // namespace atl
