#include "app/cli/foreground_agent.h"

#include "app/agent/agent_config.h"
#include "app/cli/agent_options.h"
#include "app/cli/join_progress.h"

namespace atl {
namespace {

// Nobody takes the trainer of a foreground command over: it ends soon after it.
constexpr std::chrono::seconds kForegroundPatience{5};

}  // namespace

Status train_in_foreground(const AgentHome& home, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const Config config, Config::load(config_sources(home)));
  ATOLL_ASSIGN_OR_RETURN(AgentOptions options, agent_options(home, config));
  options.trainer_patience = kForegroundPatience;
  options.foreground = true;
  options.supervisor.agent_ends = Wish::kStop;  // Ctrl-C is a goodbye
  JoinProgress progress(context.console);
  bool said = false;
  options.on_event = [&](const ControlEvent& event) { progress.take(event); };
  options.on_turn = [&] {
    progress.show();
    if (context.interrupt.raised() && !std::exchange(said, true)) context.console.out << "stopping ..." << std::endl;
  };
  // To join is to say that it shall train, whatever was said before.
  ATOLL_RETURN_IF_ERROR(save_wish(home.wish_file(), {.wish = Wish::kRun}));
  ATOLL_ASSIGN_OR_RETURN(const auto agent, Agent::start(std::move(options)));
  Status ended = agent->run(context.interrupt, context.hurry);
  progress.show();
  return ended;
}

}  // namespace atl
