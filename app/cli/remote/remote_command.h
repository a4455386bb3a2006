// `atoll --host ssh://user@node COMMAND`: the command runs there, what it prints comes here. The other side is
// `atoll control --stdio`, reached by ssh; docs/control.md tells what the two say to each other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli/command.h"

namespace atl {

// The machine that the arguments name, which then are without it; empty: this one.
std::optional<std::string> take_host(std::vector<std::string>& arguments);
// Runs `arguments` on that machine; its exit code. Invites go by its standard input, never as an argument.
int run_remotely(const std::string& host, std::vector<std::string> arguments, Console& console,
                 const AbortSignal& interrupt);

void add_control_command(CLI::App& app, CommandContext& context);

}  // namespace atl
