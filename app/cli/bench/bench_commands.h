// The subcommands of `atoll bench`.
#pragma once

#include "app/cli/command.h"

namespace atl {

void add_bench_all_reduce_command(CLI::App& bench, CommandContext& context);
void add_bench_quantise_command(CLI::App& bench, CommandContext& context);
void add_bench_link_command(CLI::App& bench, CommandContext& context);

}  // namespace atl
