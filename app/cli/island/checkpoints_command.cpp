// atoll checkpoints: what of the model is on this machine's disk, and whether it is whole.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/agent/files/checkpoint_list.h"
#include "app/agent/files/log_reader.h"
#include "app/cli/agent_client.h"
#include "app/cli/island/island_commands.h"
#include "app/cli/text.h"

namespace atl {
namespace {

struct Checkpoints {
  std::string home;
  bool json = false;
};

std::string word_of(std::optional<bool> whole, const Console& console) {
  if (!whole) return "not verified";
  return *whole ? console.styled("whole", Style::kGood) : console.styled("DAMAGED", Style::kBad);
}

void print(const std::vector<CheckpointFacts>& list, const std::vector<LoggedRoundFacts>& rounds, Console& console) {
  if (list.empty()) console.out << "no checkpoint yet: one is written every few rounds, and when the trainer ends\n";
  for (const CheckpointFacts& facts : list) {
    console.out << fmt::format("after round {}  {} parameters  {}  saved {}  {}\n  {}\n  sha256 {}\n", facts.outer_step,
                               format_count(facts.parameters), format_bytes(static_cast<double>(facts.bytes)),
                               log_time(static_cast<std::int64_t>(facts.saved_at)), word_of(facts.whole, console),
                               printable(facts.path.string()), printable(facts.state_hash));
  }
  for (const LoggedRoundFacts& facts : rounds) {
    console.out << fmt::format("round {}, logged  {}  {}\n  {}\n  sha256 {} after it\n", facts.round,
                               format_bytes(static_cast<double>(facts.bytes)), word_of(facts.whole, console),
                               printable(facts.path.string()), printable(facts.state_hash));
  }
  console.out << std::flush;
}

Status run(const Checkpoints& command, bool verify, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const AgentHome home, home_of_agent(command.home));
  ATOLL_RETURN_IF_ERROR(load_join_file(home.island.join_file()));
  ATOLL_ASSIGN_OR_RETURN(auto list, list_checkpoints(home.island));
  auto rounds = list_logged_rounds(home.island);
  bool damaged = false;
  for (LoggedRoundFacts& facts : rounds) {
    if (verify) {
      ATOLL_ASSIGN_OR_RETURN(facts, verify_logged_round(std::move(facts)));
    }
    damaged = damaged || facts.whole == false;
  }
  for (CheckpointFacts& facts : list) {
    if (verify) {
      ATOLL_ASSIGN_OR_RETURN(facts, verify_checkpoint(facts.path));
    }
    damaged = damaged || facts.whole == false;
  }
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

}  // namespace

void add_checkpoints_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<Checkpoints>();
  CLI::App* sub = app.add_subcommand("checkpoints", "The model's state on this machine's disk: list, verify");
  sub->footer(
      "Examples:\n  atoll checkpoints\n  atoll checkpoints verify --json\n\n'atoll export' writes it for others to "
      "open.");
  sub->require_subcommand(0, 1);
  add_home_option(*sub, command->home);
  sub->add_flag("--json", command->json, "Print JSON");
  for (const char* name : {"list", "verify"}) {
    CLI::App* action = sub->add_subcommand(
        name, name[0] == 'l' ? "What there is (the default)" : "Read all of it and compare with its SHA-256");
    action->fallthrough();
    action->footer(fmt::format("Example:\n  atoll checkpoints {}", name));
  }
  sub->callback([command, sub, &context] { context.finish(run(*command, sub->got_subcommand("verify"), context)); });
}

}  // namespace atl
