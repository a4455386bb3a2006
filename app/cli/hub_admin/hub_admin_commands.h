// The subcommands with which an operator looks after a hub: islands, remove, config, data, backup, restore.
#pragma once

#include "app/cli/command.h"

namespace atl {

void add_hub_admin_commands(CLI::App& hub, CommandContext& context);
void add_hub_rollback_command(CLI::App& hub, CommandContext& context);  // added by the above

}  // namespace atl
