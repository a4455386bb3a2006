// atoll control --stdio: what `atoll --host ssh://...` and the desktop app start on the other machine.
#include <CLI/CLI.hpp>

#include "app/cli/agent_client.h"
#include "app/cli/own_programs.h"
#include "app/cli/remote/remote_command.h"
#include "app/cli/remote/stdio_bridge.h"
#include "net/control/home.h"

namespace atl {
namespace {

Status run(const std::string& home, const AbortSignal& interrupt) {
  ATOLL_ASSIGN_OR_RETURN(const AgentHome agent, home_of_agent(home));
  StdioBridgeOptions options;
  ATOLL_ASSIGN_OR_RETURN(options.program, locate_atoll());
  options.agent_socket = agent.socket;
  return serve_stdio(options, interrupt);
}

}  // namespace

void add_control_command(CLI::App& app, CommandContext& context) {
  auto home = std::make_shared<std::string>();
  auto stdio = std::make_shared<bool>(false);
  CLI::App* sub = app.add_subcommand("control", "Speak the control protocol on standard input and output");
  sub->footer(
      "Example:\n  ssh user@node atoll control --stdio\n\n'atoll --host ssh://user@node COMMAND' does so for you.");
  sub->add_flag("--stdio", *stdio, "On standard input and output")->required();
  sub->add_option("--home", *home, "Island's home (default: this user's island)")->type_name("DIR");
  sub->callback([home, stdio, &context] { context.finish(run(*home, context.interrupt)); });
}

}  // namespace atl
