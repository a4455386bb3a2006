// What every subcommand gets, and how it ends: one line of error (what happened, why, what to do), one exit code. A
// subcommand is a function that adds itself to the parser; tests run them in-process through run_cli.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "app/cli/console.h"
#include "net/base/abort_signal.h"
#include "net/base/exit_code.h"
#include "net/base/result.h"

namespace CLI {
class App;
}

namespace atl {

struct CommandContext {
  Console& console;
  // Raised by Ctrl-C or SIGTERM; a command that takes long ends then.
  const AbortSignal& interrupt;
  // Raised by the second of them: whoever ends cleanly ends at once instead. Null: there is no second one.
  const AbortSignal* hurry = nullptr;
  int exit_code = kExitOk;

  // Ends the command: prints the error, if it is one, and sets the exit code.
  void finish(const Status& status);
};

void add_hub_init_command(CLI::App& hub, CommandContext& context);
void add_hub_serve_command(CLI::App& hub, CommandContext& context);
void add_hub_invite_command(CLI::App& hub, CommandContext& context);
void add_hub_invites_command(CLI::App& hub, CommandContext& context);
void add_hub_status_command(CLI::App& hub, CommandContext& context);
void add_agent_command(CLI::App& app, CommandContext& context);
void add_join_command(CLI::App& app, CommandContext& context);
void add_check_command(CLI::App& app, CommandContext& context);
void add_status_command(CLI::App& app, CommandContext& context);
void add_data_command(CLI::App& app, CommandContext& context);
void add_export_command(CLI::App& app, CommandContext& context);
void add_eval_command(CLI::App& app, CommandContext& context);
void add_sample_command(CLI::App& app, CommandContext& context);
void add_merge_command(CLI::App& app, CommandContext& context);
void add_demo_command(CLI::App& app, CommandContext& context);
void add_train_command(CLI::App& app, CommandContext& context);
void add_tokenize_command(CLI::App& app, CommandContext& context);

// Parses and runs. `arguments` without the program's name. The exit code.
int run_cli(const std::vector<std::string>& arguments, Console& console, const AbortSignal& interrupt,
            const AbortSignal* hurry = nullptr);

// A home given by --home, or the default one.
Result<std::filesystem::path> island_home_or_default(const std::string& given);
Result<std::filesystem::path> hub_home_or_default(const std::string& given);

}  // namespace atl
