// atoll checkpoints: what of the model is on this machine's disk, whether it is whole, which of it is the newest, and
// what need not stay.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/agent/agent_config.h"
#include "app/agent/files/checkpoint_change.h"
#include "app/agent/files/checkpoint_list.h"
#include "app/agent/files/log_reader.h"
#include "app/agent/trainer_process.h"
#include "app/cli/agent_client.h"
#include "app/cli/island/island_commands.h"
#include "app/cli/text.h"
#include "net/base/round_words.h"
#include "net/wire/run_config.h"

namespace atl {
namespace {

struct Checkpoints {
  std::string home;
  bool json = false;
  std::uint32_t step = 0;                        // of restore
  std::uint32_t keep = RunConfig().keep_states;  // of prune
};

std::string word_of(std::optional<bool> whole, const Console& console) {
  if (!whole) return "not verified";
  return *whole ? console.styled("whole", Style::kGood) : console.styled("DAMAGED", Style::kBad);
}

void print(const std::vector<CheckpointFacts>& list, const std::vector<LoggedRoundFacts>& rounds, Console& console) {
  if (list.empty()) console.out << "no checkpoint yet: one is written every few rounds, and when the trainer ends\n";
  for (const CheckpointFacts& facts : list) {
    console.out << fmt::format("{}  {} parameters  {}  saved {}  {}\n  {}\n  sha256 {}\n",
                               after_round(facts.outer_step), format_count(facts.parameters),
                               format_bytes(static_cast<double>(facts.bytes)),
                               log_time(static_cast<std::int64_t>(facts.saved_at)), word_of(facts.whole, console),
                               printable(facts.path.string()), printable(facts.state_hash));
  }
  for (const LoggedRoundFacts& facts : rounds) {
    console.out << fmt::format("round {}, logged  {}  {}\n  {}\n  sha256 {} after it\n", round_number(facts.round),
                               format_bytes(static_cast<double>(facts.bytes)), word_of(facts.whole, console),
                               printable(facts.path.string()), printable(facts.state_hash));
  }
  console.out << std::flush;
}

Status run(const Checkpoints& command, bool verify, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const AgentHome home, home_of_agent(command.home));
  ATOLL_RETURN_IF_ERROR(load_membership(home.island));
  ATOLL_ASSIGN_OR_RETURN(auto list, list_checkpoints(home.island));
  auto rounds = list_logged_rounds(home.island);
  if (verify) ATOLL_RETURN_IF_ERROR(verify_all(list, rounds));
  const auto is_damaged = [](const auto& facts) { return facts.whole == false; };
  const bool damaged = std::ranges::any_of(list, is_damaged) || std::ranges::any_of(rounds, is_damaged);
  if (command.json) {
    context.console.out << checkpoints_json(list, rounds).dump() << std::endl;
  } else {
    print(list, rounds, context.console);
  }
  if (!damaged) return ok_status();
  return Error{
      ErrorCode::kCorrupt,
      "what is marked so is damaged; remove it: the island then goes on from what else is here, and fetches the "
      "rest from the others when it starts"};
}

// Nobody writes there but this command.
Result<AgentHome> home_at_rest(const Checkpoints& command, const char* what) {
  ATOLL_ASSIGN_OR_RETURN(AgentHome home, home_of_agent(command.home));
  ATOLL_RETURN_IF_ERROR(load_membership(home.island));
  const bool answers = ControlClient::connect(home.island.control_socket(), answer_deadline()).ok();
  if (!answers && !TrainerProcess::find(home)) return home;
  return Error{ErrorCode::kConflict,
               fmt::format("the trainer runs and keeps its checkpoints itself; 'atoll stop' ends it, then: atoll "
                           "checkpoints {}",
                           what)};
}

Status restore(const Checkpoints& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const AgentHome home, home_at_rest(command, fmt::format("restore {}", command.step).c_str()));
  ATOLL_ASSIGN_OR_RETURN(const RestoredCheckpoint restored, restore_checkpoint(home.island, OuterStep{command.step}));
  auto& out = context.console.out;
  if (command.json) {
    out << to_json(restored).dump() << std::endl;
    return ok_status();
  }
  out << fmt::format("the state {} is the newest here; it was read and is whole\n  sha256 {}\n",
                     after_round(restored.outer_step.value), printable(restored.state_hash));
  if (restored.aside.empty()) {
    out << "nothing newer was here\n";
  } else {
    out << fmt::format("{} went to {}; nothing was removed\n",
                       format_number_of(restored.moved.size(), "newer state or round file"),
                       printable(restored.aside.string()));
  }
  out << fmt::format(
             "The hub decides from which state the run goes on. This is for when its operator says 'atoll hub rollback "
             "--to {}';\nwithout it the island fetches the run's newest state from the others when it starts",
             restored.outer_step.value)
      << std::endl;
  return ok_status();
}

Status prune(const Checkpoints& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const AgentHome home, home_at_rest(command, "prune"));
  ATOLL_ASSIGN_OR_RETURN(const Config config, Config::load(config_sources(home)));
  Retention retention{.keep = command.keep, .rounds = {}};
  retention.days = static_cast<std::uint32_t>(config.whole("checkpoints.keep_daily"));
  for (const std::uint32_t step : config_steps(config.text("checkpoints.keep_rounds"))) {
    retention.rounds.insert(OuterStep{step});
  }
  const RemovedCheckpoints removed = prune_checkpoints(home.island, retention);
  auto& out = context.console.out;
  if (command.json) {
    out << to_json(removed).dump() << std::endl;
    return ok_status();
  }
  for (const auto& state : removed.states) {
    out << fmt::format("removed the state {}  {}\n  {}\n", after_round(state.outer_step.value),
                       format_bytes(static_cast<double>(state.bytes)), printable(state.path.string()));
  }
  if (!removed.rounds.empty()) {
    out << fmt::format("removed {}, logged\n", format_number_of(removed.rounds.size(), "round"));
  }
  out << (removed.bytes == 0 ? "nothing is here that need not stay"
                             : format_bytes(static_cast<double>(removed.bytes)) + " are free")
      << std::endl;
  return ok_status();
}

Status run(const Checkpoints& command, const CLI::App& sub, CommandContext& context) {
  if (sub.got_subcommand("restore")) return restore(command, context);
  if (sub.got_subcommand("prune")) return prune(command, context);
  return run(command, sub.got_subcommand("verify"), context);
}

void add_changes(CLI::App& sub, Checkpoints& command) {
  CLI::App* action = sub.add_subcommand("restore", "Make an older state the newest here, while nothing trains");
  action->fallthrough();
  action->add_option("step", command.step, "That after round N, as 'atoll checkpoints' says")
      ->type_name("N")
      ->required();
  action->footer("Example:\n  atoll stop && atoll checkpoints restore 46\n\nFor 'atoll hub rollback --to 46'.");
  action = sub.add_subcommand("prune", "Remove the states and rounds that need not stay, while nothing trains");
  action->fallthrough();
  action->add_option("--keep", command.keep, "States that stay, beside those of checkpoints.keep_daily and keep_rounds")
      ->type_name("N")
      ->check(CLI::Range(1u, 1000u))
      ->capture_default_str();
  action->footer("Example:\n  atoll checkpoints prune --keep 1");
}

}  // namespace

void add_checkpoints_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<Checkpoints>();
  CLI::App* sub =
      app.add_subcommand("checkpoints", "The model's state on this machine's disk: list, verify, restore, prune");
  sub->footer(
      "Examples:\n  atoll checkpoints\n  atoll checkpoints verify --json\n  atoll checkpoints prune --keep 1\n\n"
      "'atoll export' writes it for others to open.");
  sub->require_subcommand(0, 1);
  add_home_option(*sub, command->home);
  sub->add_flag("--json", command->json, "Print JSON");
  for (const char* name : {"list", "verify"}) {
    CLI::App* action = sub->add_subcommand(
        name, name[0] == 'l' ? "What there is (the default)" : "Read all of it and compare with its SHA-256");
    action->fallthrough();
    action->footer(fmt::format("Example:\n  atoll checkpoints {}", name));
  }
  add_changes(*sub, *command);
  sub->callback([command, sub, &context] { context.finish(run(*command, *sub, context)); });
}

}  // namespace atl
