#include "app/agent/files/checkpoint_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/base/new_file.h"
#include "net/base/round_words.h"
#include "net/disk/checkpoint_directory.h"
#include "net/disk/checkpoint_model.h"
#include "net/disk/replay.h"

namespace atl {
namespace {

Error leads_nowhere(OuterStep step, const std::vector<KeptState>& kept, const LoggedRounds& logged) {
  std::string there;
  for (const HeldState& state : durable_states(kept, logged)) {
    there += fmt::format("{}{}", there.empty() ? "" : ", ", state.outer_step.value);
  }
  return Error{
      ErrorCode::kNotFound,
      fmt::format("the state {} is not on this disk{}; 'atoll checkpoints' lists what is", after_round(step.value),
                  there.empty() ? "" : fmt::format(": those after rounds {} are", there))};
}

// The first of aside.1, aside.2, ... that is not there.
std::filesystem::path free_aside(const std::filesystem::path& directory) {
  std::error_code failed;
  for (int i = 1;; ++i) {
    std::filesystem::path aside = directory / fmt::format("aside.{}", i);
    if (!std::filesystem::exists(std::filesystem::symlink_status(aside, failed))) return aside;
  }
}

// Moves states away until this one is what an island begins with.
class SetAside {
 public:
  SetAside(std::filesystem::path directory, HeldState wanted)
      : directory_(std::move(directory)), wanted_(std::move(wanted)), log_(directory_) {}

  Status run() {
    for (const KeptState& kept : kept_states(directory_)) {
      if (kept.state().outer_step > wanted_.outer_step) ATOLL_RETURN_IF_ERROR(move(kept.path));
    }
    for (const std::filesystem::path& file : log_.files_from(wanted_.outer_step)) ATOLL_RETURN_IF_ERROR(move(file));
    for (;;) {
      const std::vector<KeptState> kept = kept_states(directory_);
      const auto found = newest_states(kept, log_.rounds());
      if (found.empty() || found.front().state == wanted_) return ok_status();
      // Of another history, which counts more: the hub had this island go back to it.
      ATOLL_RETURN_IF_ERROR(move(found.front().snapshot.path));
    }
  }
  const std::filesystem::path& aside() const { return aside_; }
  std::vector<std::filesystem::path> moved() { return std::move(moved_); }

 private:
  Status move(const std::filesystem::path& path) {
    if (aside_.empty()) aside_ = free_aside(directory_);
    const auto to = aside_ / path.lexically_relative(directory_);
    ATOLL_RETURN_IF_ERROR(make_directories(to.parent_path(), FileMode::kPrivate));
    ATOLL_RETURN_IF_ERROR(rename_and_flush(path, to));
    moved_.push_back(path);
    return ok_status();
  }

  const std::filesystem::path directory_;
  const HeldState wanted_;
  const RoundLog log_;
  std::filesystem::path aside_;
  std::vector<std::filesystem::path> moved_;
};

}  // namespace

Result<RestoredCheckpoint> restore_checkpoint(const IslandHome& home, OuterStep step) {
  const std::filesystem::path directory = home.checkpoint();
  const RoundLog log(directory);
  std::vector<KeptState> kept = kept_states(directory);
  const LoggedRounds logged = log.rounds();
  std::erase_if(kept, [&](const KeptState& state) { return state.state().outer_step > step; });
  const auto way = way_to(step, kept, logged);
  if (!way) return leads_nowhere(step, kept_states(directory), logged);
  ATOLL_ASSIGN_OR_RETURN(const CheckpointModel model, load_checkpoint_model(directory));
  const ParameterLayout& layout = model.layout;
  ATOLL_ASSIGN_OR_RETURN(const HeldState made, try_restore(*way, log, layout));
  if (made != way->state) {
    return Error{ErrorCode::kCorrupt, fmt::format("a round that leads to the state {} is damaged: {} is as far as it "
                                                  "goes; nothing was changed",
                                                  after_round(step.value), after_round(made.outer_step.value))};
  }
  SetAside newer(directory, made);
  ATOLL_RETURN_IF_ERROR(newer.run());
  const auto now = newest_states(kept_states(directory), log.rounds());
  if (now.empty() || now.front().state != made) {
    return Error{ErrorCode::kInternal, fmt::format("the state {} could not be made the newest; what was moved is in {}",
                                                   after_round(step.value), newer.aside().string())};
  }
  return RestoredCheckpoint{made.outer_step, made.state_hash, newer.aside(), newer.moved()};
}

nlohmann::json to_json(const RestoredCheckpoint& restored) {
  nlohmann::json moved = nlohmann::json::array();
  for (const auto& path : restored.moved) moved.push_back(path.string());
  return {{"outer_step", restored.outer_step.value},
          {"state_hash", restored.state_hash},
          {"aside", restored.aside.empty() ? nlohmann::json() : nlohmann::json(restored.aside.string())},
          {"moved", std::move(moved)}};
}

RemovedCheckpoints prune_checkpoints(const IslandHome& home, const Retention& retention) {
  const std::filesystem::path directory = home.checkpoint();
  const RoundLog log(directory);
  RemovedCheckpoints removed;
  for (const KeptState& kept : plan_retention(kept_states(directory), log.rounds(), retention).remove) {
    removed.states.push_back({kept.path, kept.state().outer_step, snapshot_bytes(kept.path)});
  }
  const LoggedRounds before = log.rounds();
  remove_states(directory, retention, log);
  remove_rounds(directory, retention, log);
  std::erase_if(removed.states, [](const auto& state) { return std::filesystem::exists(state.path); });
  for (const auto& state : removed.states) removed.bytes += state.bytes;
  const LoggedRounds after = log.rounds();
  for (const auto& [number, round] : before) {
    if (after.contains(number)) continue;
    removed.rounds.push_back(number);
    removed.bytes += round.average_bytes;
  }
  return removed;
}

nlohmann::json to_json(const RemovedCheckpoints& removed) {
  nlohmann::json states = nlohmann::json::array(), rounds = nlohmann::json::array();
  for (const auto& state : removed.states) {
    states.push_back({{"path", state.path.string()}, {"outer_step", state.outer_step.value}, {"bytes", state.bytes}});
  }
  for (const OuterStep round : removed.rounds) rounds.push_back(round.value);
  return {{"checkpoints", std::move(states)}, {"rounds", std::move(rounds)}, {"bytes", removed.bytes}};
}

}  // namespace atl
