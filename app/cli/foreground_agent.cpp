#include "app/cli/foreground_agent.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <atomic>

#include "app/agent/agent_config.h"
#include "app/agent/contribution_book.h"
#include "app/cli/agent_options.h"
#include "app/cli/contribution_text.h"
#include "app/cli/join_progress.h"

namespace atl {
namespace {

// Nobody takes the trainer of a foreground command over: it ends soon after it.
constexpr std::chrono::seconds kForegroundPatience{5};

void say_goodbye(const AgentHome& home, const Contribution& before, const NodeState& state, const WaysOn& ways,
                 Console& console) {
  if (!state.agent.contributed || state.island.run_id.empty()) return;
  const ContributionView& given = *state.agent.contributed;
  const Contribution now = contributed_since(before, given.life);
  console.out << fmt::format("contributed: {}\n", contribution_text(now));
  if (given.run.tokens > now.tokens) {
    console.out << fmt::format("to this run in all: {}\n", contribution_text(given.run));
  }
  const auto& exit = state.agent.last_exit;
  const bool is_finished = exit && exit->cause == ExitCause::kRunFinished;
  if (!is_finished) console.out << "come back with: " << ways.come_back << '\n';
  if (is_finished && !ways.more_rounds.empty()) console.out << "train it further with: " << ways.more_rounds << '\n';
  const auto usual = default_island_home();
  const bool is_usual = usual.ok() && *usual == home.island.directory;
  console.out << fmt::format("{}: atoll export{} --output DIR",
                             is_finished ? "the run is finished; its model" : "the model",
                             is_usual ? "" : " --home " + home.island.directory.string())
              << std::endl;
}

Status train(const AgentHome& home, const WaysOn& ways, CommandContext& context, std::atomic<bool>& has_trained) {
  const ConfigSources sources = config_sources(home);
  ATOLL_ASSIGN_OR_RETURN(const Config config, Config::load(sources));
  ATOLL_ASSIGN_OR_RETURN(AgentOptions options, agent_options(home, sources, config));
  options.trainer_patience = kForegroundPatience;
  options.foreground = true;
  options.supervisor.agent_ends = Wish::kStop;  // Ctrl-C is a goodbye
  UnhurriedConsole unhurried(context.console);  // the agent would wait for a terminal that was stopped
  Console& console = unhurried.console();
  JoinProgress progress(console);
  bool said = false;
  options.on_event = [&](const ControlEvent& event) {
    if (const NodeState* state = state_in(event); state != nullptr && state->island.tokens > 0) has_trained = true;
    progress.take(event);
  };
  options.on_turn = [&] {
    progress.show();
    if (context.interrupt.raised() && !std::exchange(said, true)) console.out << "stopping ..." << std::endl;
  };
  // To join is to say that it shall train, whatever was said before.
  ATOLL_RETURN_IF_ERROR(save_wish(home.wish_file(), {.wish = Wish::kRun}));
  spdlog::set_level(spdlog::level::warn);  // the lines above say it in words
  ATOLL_ASSIGN_OR_RETURN(const auto agent, Agent::start(std::move(options)));
  const auto before = agent->control().board().state().agent.contributed.value_or(ContributionView{}).life;
  Status ended = agent->run(context.interrupt, context.hurry);
  progress.show();
  if (ended.ok()) say_goodbye(home, before, agent->control().board().state(), ways, console);
  return ended;
}

}  // namespace

ForegroundEnd train_in_foreground(const AgentHome& home, const WaysOn& ways, CommandContext& context) {
  std::atomic<bool> has_trained{false};
  Status ended = train(home, ways, context, has_trained);
  return {std::move(ended), has_trained};
}

}  // namespace atl
