// atoll service: the agent as a service of systemd. `atoll join --service` installs it as well.
#pragma once

#include "app/cli/command.h"
#include "app/cli/service/service_unit.h"

namespace atl {

void add_service_command(CLI::App& app, CommandContext& context);

// Installs it, and starts it now or at the next boot; asks on the terminal before lingering, unless `yes`. For
// `atoll join --service`.
Status install_service_for(ServiceScope scope, const std::string& home, bool yes, CommandContext& context,
                           bool start = true);

}  // namespace atl
