// The subcommands about this machine's island, beside join: each adds itself to the parser.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "app/cli/command.h"
#include "net/base/deadline.h"
#include "net/control/control_client.h"
#include "net/control/home.h"

namespace atl {

void add_life_commands(CLI::App& app, CommandContext& context);  // pause, resume, finish, stop, leave
void add_peers_command(CLI::App& app, CommandContext& context);
void add_rounds_command(CLI::App& app, CommandContext& context);
void add_checkpoints_command(CLI::App& app, CommandContext& context);
void add_logs_command(CLI::App& app, CommandContext& context);
void add_diag_command(CLI::App& app, CommandContext& context);
void add_config_command(CLI::App& app, CommandContext& context);

// --home of a command about this machine's island.
void add_home_option(CLI::App& command, std::string& home);

// The agent of this home, or, where none runs, its trainer. kNotJoined, kNotRunning.
Result<std::unique_ptr<ControlClient>> connect_island(const AgentHome& home);
// The agent's answer about the past or, while no agent runs, that of its history file. `method`: rounds.list,
// peers.list, metrics.query.
Result<nlohmann::json> ask_history(const AgentHome& home, const std::string& method, const nlohmann::json& params);

}  // namespace atl
