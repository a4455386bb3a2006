#include "app/cli/hub_status_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "app/cli/text.h"
#include "net/base/round_words.h"

namespace atl {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// All its rounds are committed; their last state may still be looked at, or on its way to the store.
bool has_done_all_rounds(const HubState& state) { return state.max_rounds > 0 && state.outer_step >= state.max_rounds; }

// What all rounds came to, and how long the rest takes; empty: none is committed.
std::string totals_text(const HubState& state) {
  if (state.past.empty()) return {};
  std::string text =
      fmt::format("{} tokens trained in {} of rounds", format_count(state.tokens()), format_duration(state.seconds()));
  if (state.past.back().mean_loss_nats > 0)
    text += fmt::format("  loss {}", format_loss(state.past.back().mean_loss_nats));
  if (state.max_rounds == 0 || state.finished || has_done_all_rounds(state)) return text;
  text += fmt::format("  {} to go", format_number_of(state.max_rounds - state.outer_step, "round"));
  if (const auto left = state.seconds_left()) text += fmt::format(", about {}", format_duration(*left));
  return text;
}

void add_evaluations(const HubState& state, std::ostream& out) {
  for (const HubState::Evaluation& evaluation : state.evaluations) {
    if (evaluation.points.empty()) {
      out << fmt::format("{}: not asked yet\n", printable(evaluation.task));
      continue;
    }
    std::string figures;
    for (const auto& figure : evaluation.newest) {
      figures += fmt::format("{}{} {:.4g}", figures.empty() ? "" : ", ", printable(figure.metric), figure.value);
    }
    const auto& first = evaluation.points.front();
    out << fmt::format("{}: {} {} ({} {:.4g} {})\n", printable(evaluation.task), figures,
                       after_round(evaluation.points.back().outer_step), printable(evaluation.metric), first.value,
                       after_round(first.outer_step));
  }
}

}  // namespace

std::vector<std::string> hub_status_lines(const HubState& state, const std::string& store, const Console& console) {
  std::ostringstream out;
  const std::string round = state.finished               ? "finished"
                            : state.standstill           ? "stands still"
                            : !state.waits_for.empty()   ? "waits for who holds the model"
                            : !state.fetch_wait.empty()  ? "waits for a fetch"
                            : has_done_all_rounds(state) ? "ends: what it came to is validated and published"
                            : state.round_open
                                ? fmt::format("round {} {}", round_number(state.outer_step), word_of(state.phase))
                                : fmt::format("waiting for {}", format_number_of(state.min_islands, "island"));
  out << fmt::format("run {} ({})  {} committed  {}\n", console.styled(printable(state.name), Style::kBold),
                     printable(state.run_id), format_number_of(state.outer_step, "round"), round);
  if (const std::string totals = totals_text(state); !totals.empty()) out << totals << '\n';
  if (state.fragments > 1) out << fmt::format("each round averages one of {} fragments\n", state.fragments);
  if (state.standstill) {
    out << console.styled(fmt::format("the run stands still, for {}: ", format_duration(state.standstill->seconds)),
                          Style::kBold)
        << printable(state.standstill->text) << "\n";
  }
  if (!state.waits_for.empty()) {
    out << console.styled(printable(state.waits_for), Style::kWarning) << "\n";
  }
  if (!state.fetch_wait.empty()) out << printable(state.fetch_wait) << "\n";
  const bool nobody_is_here = std::ranges::all_of(state.islands, &HubState::Island::is_gone);
  if (state.safe_outer_step) {
    out << fmt::format("safe on the islands' disks: the state {}\n", after_round(*state.safe_outer_step));
  } else if (!nobody_is_here) {
    out << (state.outer_step == 0 ? "nothing is safe on the islands' disks yet\n"
                                  : "fewer islands than make a state safe are known to have one on their disks\n");
  }
  if (state.outer_step > 0 && nobody_is_here && !state.finished) {
    out << fmt::format("nobody is here; who trained last has the state {}, and the run goes on when they come back\n",
                       after_round(state.outer_step));
  } else if (state.outer_step > 0 && state.disks_with_committed <= 1 && state.safe_outer_step != state.outer_step) {
    out << fmt::format("the state {} is on {}\n", after_round(state.outer_step),
                       state.disks_with_committed == 0 ? "no disk of an island that is known to have it"
                                                       : "the disk of one island alone");
  }
  if (state.uploaded_outer_step) {
    out << fmt::format("the state {} is in the object store\n", after_round(*state.uploaded_outer_step));
  } else if (!store.empty()) {
    out << fmt::format(
        "no state is in {} yet: an island writes there whose owner gave it store.bucket and credentials\n",
        printable(store));
  }
  if (state.decay) {
    out << fmt::format("the learning rate falls to {} from round {} on, over {} ({})\n",
                       state.decay->final_learning_rate, round_number(state.decay->from_round),
                       format_number_of(state.decay->rounds, "round"), decay_shape_name(state.decay->shape));
  }
  if (state.mixture) out << fmt::format("data: {}\n", state.mixture->weights);
  if (state.mixture && state.mixture->next_round) {
    out << fmt::format("data from round {} on: {}\n", round_number(*state.mixture->next_round),
                       state.mixture->next_weights);
  }
  if (state.last_validation) {
    out << fmt::format("validation loss {} {} (first {})\n", format_loss(state.last_validation->loss_nats),
                       after_round(state.last_validation->outer_step), format_loss(state.first_validation->loss_nats));
  }
  add_evaluations(state, out);
  out << fmt::format("{} {} {} {} {} {} {}\n", fit("island", 20), fit("name", 14), fit("state", 11),
                     fit_right("step", 6), fit_right("loss", 7), fit_right("tokens/s", 10), "accepted");
  for (const HubState::Island& island : state.islands) {
    out << fmt::format(
        "{} {} {} {} {} {} {}{}\n", fit(printable(island.id), 20), fit(printable(island.name), 14),
        fit(island.word(), 11), fit_right(std::to_string(island.inner_step), 6),
        fit_right(format_loss(island.loss_nats), 7),
        fit_right(format_count(static_cast<std::uint64_t>(island.tokens_per_second)), 10),
        format_number_of(island.rounds_accepted, "round"),
        island.last_seen_seconds > 5 ? ", last seen " + format_duration(island.last_seen_seconds) + " ago" : "");
  }
  return lines_of(out.str());
}

}  // namespace atl
