#include "app/cli/train_changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "app/cli/text.h"
#include "net/data/source_name.h"
#include "net/hub/hub_home.h"

namespace atl {
namespace {

// The others say what the run's state and data are made of, or are needed to take logged rounds again as they were.
constexpr std::array kMayChange = {"--rounds",      "--lr",          "--final-lr",    "--warmup-steps",
                                   "--decay-steps", "--decay-start", "--decay-shape", "--validate-every",
                                   "--keep-states", "--when-lost",   "--norm-bound",  "--validation-rise"};

// Who repeats the command with which the run began names its data again.
bool is_data_of(const HubHome& hub, const std::vector<std::string>& data) {
  const auto file = load_hub_file(hub);
  if (!file.ok()) return false;
  std::set<std::filesystem::path> has, named;
  std::error_code failed;
  for (const auto& [source, directory] : file->datasets)
    has.insert(std::filesystem::weakly_canonical(directory, failed));
  for (const std::string& text : data) named.insert(std::filesystem::weakly_canonical(split_name(text).second, failed));
  return has == named;
}

Status check_may_change(const HubHome& hub, const RunChange& change) {
  std::vector<std::string> fixed;
  for (const std::string& option : change.options) {
    const bool may = std::ranges::find(kMayChange, option) != kMayChange.end();
    if (!may && !(option == "--data" && is_data_of(hub, change.run->data))) fixed.push_back(option);
  }
  if (fixed.empty()) return ok_status();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} holds a run, of which {} cannot change; leave {} out, or choose another directory. What "
                           "may change: {}",
                           hub.directory.parent_path().string(), fmt::join(fixed, ", "),
                           fixed.size() == 1 ? "it" : "them", fmt::join(kMayChange, ", "))};
}

std::string rounds_text(std::uint32_t rounds) {
  return rounds == 0 ? "as many rounds as come" : format_number_of(rounds, "round");
}

// A decay that would have ended with the last round, and has not begun, ends with the new one.
void move_decay(const RunConfig& before, std::uint32_t done, RunConfig& run) {
  InnerOptimizerConfig& inner = run.inner;
  const std::uint64_t end = std::uint64_t{before.max_rounds} * before.inner_steps;
  const std::uint64_t new_end = std::uint64_t{run.max_rounds} * run.inner_steps;
  const bool ends_with_run = inner.decay_steps > 0 && inner.decay_start_step + inner.decay_steps == end;
  const bool has_begun = std::uint64_t{done} * run.inner_steps > inner.decay_start_step;
  const bool has_room = new_end >= inner.warmup_steps + inner.decay_steps;
  if (ends_with_run && !has_begun && has_room) inner.decay_start_step = new_end - inner.decay_steps;
}

bool is_given(const RunChange& change, std::string_view option) {
  return std::ranges::find(change.options, option) != change.options.end();
}

}  // namespace

Result<ChangedRun> change_trained_run(const HubHome& hub, const RunChange& change) {
  ATOLL_ASSIGN_OR_RETURN(const RunConfig before, load_run(hub));
  ATOLL_RETURN_IF_ERROR(check_may_change(hub, change));
  ATOLL_ASSIGN_OR_RETURN(const std::uint32_t done, committed_rounds(hub));
  RunOverrides overrides = change.run->overrides;
  if (change.more_rounds) {
    if (*change.more_rounds > UINT32_MAX - done) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("--rounds +{} is more than a run can have", *change.more_rounds)};
    }
    overrides.max_rounds = done + *change.more_rounds;
  }
  if (overrides.max_rounds && *overrides.max_rounds > 0 && *overrides.max_rounds < done) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--rounds {}: {} done already; say a larger number, or how many more, --rounds +N",
                             *overrides.max_rounds, done == 1 ? "1 round is" : fmt::format("{} rounds are", done))};
  }
  ATOLL_ASSIGN_OR_RETURN(RunConfig run, change_run(before, overrides));
  if (!is_given(change, "--decay-start") && !is_given(change, "--decay-steps")) move_decay(before, done, run);
  ChangedRun changed{run, {}};
  if (run.max_rounds != before.max_rounds) {
    changed.lines.push_back(fmt::format("the run now has {} instead of {}; {} done", rounds_text(run.max_rounds),
                                        rounds_text(before.max_rounds),
                                        done == 1 ? "1 is" : fmt::format("{} are", format_count(done))));
  }
  const std::string rate = describe_learning_rate(run.inner);
  if (rate != describe_learning_rate(before.inner)) changed.lines.push_back("now: " + rate);
  const InnerOptimizerConfig& inner = run.inner;
  const bool decayed =
      inner.decay_steps > 0 && std::uint64_t{done} * run.inner_steps >= inner.decay_start_step + inner.decay_steps;
  if (run.max_rounds != before.max_rounds && decayed) {
    changed.lines.push_back(fmt::format(
        "the learning rate has fallen and stays at {}; another: --lr RATE --decay-steps N", inner.final_learning_rate));
  }
  if (changed.lines.empty() && run.to_json() != before.to_json())
    changed.lines.push_back("the run's settings are changed");
  return changed;
}

}  // namespace atl
