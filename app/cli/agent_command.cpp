// atoll agent: the island's long-lived process, as a service runs it.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>

#include "app/agent/agent.h"
#include "app/cli/check_run.h"
#include "app/cli/child_process.h"
#include "app/cli/command.h"

namespace atl {
namespace {

struct AgentRequest {
  std::string home;
  bool system = false;
  std::string hours;
};

Status run_agent(const AgentRequest& command, CommandContext& context) {
  AgentOptions options;
  if (command.system) {
    options.home = system_agent_home();
    options.access = SocketAccess::kGroup;
  } else {
    ATOLL_ASSIGN_OR_RETURN(options.home, find_agent_home(command.home));
  }
  ATOLL_ASSIGN_OR_RETURN(options.training_hours, parse_training_hours(command.hours));
  ATOLL_ASSIGN_OR_RETURN(options.trainer, locate_trainer());
  options.check_node = node_check_of(options.home.island);
  ATOLL_ASSIGN_OR_RETURN(const auto agent, Agent::start(std::move(options)));
  spdlog::info("agent started version={}", ATOLL_VERSION);
  return agent->run(context.interrupt, context.hurry);
}

}  // namespace

void add_agent_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<AgentRequest>();
  CLI::App* sub = app.add_subcommand("agent", "Keep this machine's island training, as a service does");
  sub->footer(
      "Starts the trainer of a joined run, watches it and starts it again, until Ctrl-C or SIGTERM, which ends it\n"
      "cleanly within 90 s; a second one at once. It serves the control socket for the other commands.\n\n"
      "Example:\n  atoll agent --hours 22:00-06:00");
  auto* home = sub->add_option("--home", command->home, "Directory of everything (default: this user's directories)")
                   ->type_name("DIR");
  sub->add_flag("--system", command->system, "As a system service: /run/atoll, /etc/atoll, /var/lib/atoll")
      ->excludes(home);
  sub->add_option("--hours", command->hours, "Train only then, local time: 22:00-06:00, several with commas");
  sub->callback([command, &context] { context.finish(run_agent(*command, context)); });
}

}  // namespace atl
