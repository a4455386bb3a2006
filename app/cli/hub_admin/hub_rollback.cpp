// atoll hub rollback.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/cli/hub_admin/hub_admin_commands.h"
#include "app/cli/hub_admin/hub_calls.h"
#include "app/cli/text.h"
#include "app/cli/validators.h"
#include "net/base/round_words.h"
#include "net/control/hub_state.h"
#include "net/control/methods.h"

namespace atl {
namespace {

struct Rollback {
  std::string home, reason = "by its operator";
  std::uint32_t to = 0;
  bool json = false, force = false, yes = false;
};

std::string question(const HubState& state, std::uint32_t to) {
  const std::uint32_t undone = state.outer_step - to;
  const std::string rounds = undone == 1 ? fmt::format("Round {} is", state.outer_step)
                                         : fmt::format("Rounds {} to {} are", round_number(to), state.outer_step);
  return fmt::format("Take run {} back to the state {}? {} undone, and {} data is trained again.",
                     printable(state.name), after_round(to), rounds, undone == 1 ? "its" : "their");
}

// Where the run stands still a way back to where it is begins it anew.
bool is_there(const HubState& state, std::uint32_t to) { return state.outer_step == to && !state.standstill; }

Status roll_back(const Rollback& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto json,
                         ask_serving_hub(command.home, method::StateGet::kName, nlohmann::json::object()));
  ATOLL_ASSIGN_OR_RETURN(const HubState state, HubState::from_json(json));
  const bool nothing_to_do = is_there(state, command.to);
  if (!nothing_to_do && !state.finished && command.to < state.outer_step) {
    ATOLL_RETURN_IF_ERROR(
        ask_whether(command.yes, question(state, command.to), "nothing was undone, as you said", context));
  }
  nlohmann::json done = encode_message(method::RolledBackTo{command.to});
  if (!nothing_to_do) {
    ATOLL_ASSIGN_OR_RETURN(
        done, ask_serving_hub(command.home, method::RunRollback::kName,
                              encode_message(method::RunRollback{command.to, command.reason, command.force})));
  }
  if (command.json) {
    context.console.out << dumped(done) << std::endl;
  } else if (nothing_to_do) {
    context.console.out << fmt::format("nothing to do: the run is at the state {} already", after_round(command.to))
                        << std::endl;
  } else {
    context.console.out << fmt::format(
                               "the run goes on from the state {}; what was committed after it is kept aside, "
                               "and its data is trained again",
                               after_round(command.to))
                        << std::endl;
  }
  return ok_status();
}

}  // namespace

void add_hub_rollback_command(CLI::App& hub, CommandContext& context) {
  auto command = std::make_shared<Rollback>();
  CLI::App* sub = hub.add_subcommand("rollback", "Go back to an earlier outer state of the run");
  sub->footer(
      "Examples:\n  atoll hub rollback --to 46             at a terminal it asks first\n"
      "  atoll hub rollback --to 46 --yes\n\n"
      "For a run that stands still because nobody holds its newest state, or because that is spoiled; `atoll hub\n"
      "status` says so, and names the state to go back to. It is done at once and recorded, with the reason, for "
      "good:\n"
      "the rounds after that state are lost.");
  sub->add_option("--home", command->home, "Hub's home (default: ~/.local/share/atoll-hub)")->type_name("DIR");
  sub->add_option("--to", command->to, "To the state after this round: so many rounds stay committed")
      ->required()
      ->check(whole_number(0, UINT32_MAX));
  sub->add_option("--reason", command->reason, "Kept in the hub's records")->type_name("TEXT");
  sub->add_flag("--force", command->force, "Also to a state that no island which is here keeps, and no store");
  sub->add_flag("--yes", command->yes, "Do not ask");
  sub->add_flag("--json", command->json, "Print JSON");
  sub->callback([command, &context] { context.finish(roll_back(*command, context)); });
}

}  // namespace atl
