// atoll hub status: ask the hub on its control socket.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/cli/agent_client.h"
#include "app/cli/command.h"
#include "app/cli/text.h"
#include "net/control/control_client.h"
#include "net/control/home.h"
#include "net/control/hub_state.h"
#include "net/control/methods.h"

namespace atl {
namespace {

struct HubStatusRequest {
  std::string home;
  bool json = false;
};

void print_evaluations(const HubState& state, Console& console) {
  for (const HubState::Evaluation& evaluation : state.evaluations) {
    if (evaluation.points.empty()) {
      console.out << fmt::format("{}: not asked yet\n", printable(evaluation.task));
      continue;
    }
    std::string figures;
    for (const auto& figure : evaluation.newest) {
      figures += fmt::format("{}{} {:.4g}", figures.empty() ? "" : ", ", printable(figure.metric), figure.value);
    }
    const auto& first = evaluation.points.front();
    console.out << fmt::format("{}: {} after round {} ({} {:.4g} after round {})\n", printable(evaluation.task),
                               figures, evaluation.points.back().outer_step, printable(evaluation.metric), first.value,
                               first.outer_step);
  }
}

void print_hub(const HubState& state, Console& console) {
  const std::string round = state.finished              ? "finished"
                            : state.standstill          ? "stands still"
                            : !state.waits_for.empty()  ? "waits for who holds the model"
                            : !state.fetch_wait.empty() ? "waits for a fetch"
                            : state.round_open
                                ? fmt::format("round {} {}", state.outer_step, word_of(state.phase))
                                : fmt::format("waiting for {}", format_number_of(state.min_islands, "island"));
  console.out << fmt::format("run {} ({})  {} committed  {}\n", console.styled(printable(state.name), Style::kBold),
                             printable(state.run_id), format_number_of(state.outer_step, "round"), round);
  if (state.fragments > 1) console.out << fmt::format("each round averages one of {} fragments\n", state.fragments);
  if (state.standstill) {
    console.out << console.styled(
                       fmt::format("the run stands still, for {}: ", format_duration(state.standstill->seconds)),
                       Style::kBold)
                << printable(state.standstill->text) << "\n";
  }
  if (!state.waits_for.empty()) {
    console.out << console.styled(printable(state.waits_for), Style::kWarning) << "\n";
  }
  if (!state.fetch_wait.empty()) console.out << printable(state.fetch_wait) << "\n";
  const bool nobody_is_here = std::ranges::all_of(state.islands, &HubState::Island::is_gone);
  if (state.safe_outer_step) {
    console.out << fmt::format("safe on the islands' disks up to outer step {}\n", *state.safe_outer_step);
  } else if (!nobody_is_here) {
    console.out << (state.outer_step == 0
                        ? "nothing is safe on the islands' disks yet\n"
                        : "fewer islands than make a state safe are known to have one on their disks\n");
  }
  if (state.outer_step > 0 && nobody_is_here && !state.finished) {
    console.out << fmt::format(
        "nobody is here; who trained last has outer step {}, and the run goes on when they "
        "come back\n",
        state.outer_step);
  } else if (state.outer_step > 0 && state.disks_with_committed <= 1 && state.safe_outer_step != state.outer_step) {
    console.out << fmt::format("outer step {} is on {}\n", state.outer_step,
                               state.disks_with_committed == 0 ? "no disk of an island that is known to have it"
                                                               : "the disk of one island alone");
  }
  if (state.uploaded_outer_step) {
    console.out << fmt::format("outer step {} is in the object store\n", *state.uploaded_outer_step);
  }
  if (state.decay) {
    console.out << fmt::format("the learning rate falls to {} from round {} on, over {} ({})\n",
                               state.decay->final_learning_rate, state.decay->from_round,
                               format_number_of(state.decay->rounds, "round"), decay_shape_name(state.decay->shape));
  }
  if (state.mixture) console.out << fmt::format("data: {}\n", state.mixture->weights);
  if (state.mixture && state.mixture->next_round) {
    console.out << fmt::format("data from round {} on: {}\n", *state.mixture->next_round, state.mixture->next_weights);
  }
  if (state.last_validation) {
    console.out << fmt::format("validation loss {} after round {} (first {})\n",
                               format_loss(state.last_validation->loss_nats), state.last_validation->outer_step,
                               format_loss(state.first_validation->loss_nats));
  }
  print_evaluations(state, console);
  console.out << fmt::format("{} {} {} {} {} {} {}\n", fit("island", 20), fit("name", 14), fit("state", 11),
                             fit_right("step", 6), fit_right("loss", 7), fit_right("tokens/s", 10), "accepted");
  for (const HubState::Island& island : state.islands) {
    console.out << fmt::format(
        "{} {} {} {} {} {} {}{}\n", fit(printable(island.id), 20), fit(printable(island.name), 14),
        fit(island.word(), 11), fit_right(std::to_string(island.inner_step), 6),
        fit_right(format_loss(island.loss_nats), 7),
        fit_right(format_count(static_cast<std::uint64_t>(island.tokens_per_second)), 10),
        format_number_of(island.rounds_accepted, "round"),
        island.last_seen_seconds > 5 ? ", last seen " + format_duration(island.last_seen_seconds) + " ago" : "");
  }
  console.out << std::flush;
}

Status show_hub(const HubStatusRequest& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(command.home));
  const HubHome home{directory};
  std::error_code ignored;
  if (!std::filesystem::exists(home.run_file(), ignored)) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{} holds no hub; make one with: atoll hub init", directory.string())};
  }
  const auto client = ControlClient::connect(home.control_socket(), answer_deadline());
  if (!client.ok()) {
    if (client.error().code != ErrorCode::kNotRunning) return client.error();
    return Error{ErrorCode::kNotRunning,
                 fmt::format("the hub in {} does not serve; start it with: atoll hub serve", directory.string())};
  }
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json json,
                         (*client)->call(method::StateGet::kName, nlohmann::json::object(), answer_deadline()));
  ATOLL_ASSIGN_OR_RETURN(const HubState state, HubState::from_json(json));
  if (command.json) {
    context.console.out << json.dump() << std::endl;
  } else {
    print_hub(state, context.console);
  }
  return ok_status();
}

}  // namespace

void add_hub_status_command(CLI::App& hub, CommandContext& context) {
  auto command = std::make_shared<HubStatusRequest>();
  CLI::App* sub = hub.add_subcommand("status", "The run and its islands, as the hub sees them");
  sub->footer("Example:\n  atoll hub status --json");
  sub->add_option("--home", command->home, "Hub's home (default: ~/.local/share/atoll-hub)")->type_name("DIR");
  sub->add_flag("--json", command->json, "Print JSON");
  sub->callback([command, &context] { context.finish(show_hub(*command, context)); });
}

}  // namespace atl
