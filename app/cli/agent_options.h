// What an agent needs beside its home, the same for a service and a foreground command.
#pragma once

#include "app/agent/agent.h"
#include "app/config/config.h"

namespace atl {

// The owner's limits, and the programs beside this one. kTrainerFailed when one is missing that is needed.
Result<AgentOptions> agent_options(const AgentHome& home, const ConfigSources& sources, const Config& config);

}  // namespace atl
