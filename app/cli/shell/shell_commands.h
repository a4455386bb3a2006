// atoll completion, and the hidden `atoll man` with which the build makes the man pages. `app` is the whole parser,
// read when the command runs.
#pragma once

#include "app/cli/command.h"

namespace atl {

void add_completion_command(CLI::App& app, CommandContext& context);
void add_man_command(CLI::App& app, CommandContext& context);

}  // namespace atl
