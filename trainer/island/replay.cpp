#include "trainer/island/replay.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "net/disk/checkpoint_directory.h"
#include "net/model/fragments.h"

namespace atl {
namespace {

// The state it makes lies in a history, which is known by the epoch of the round that made it.
std::uint64_t epoch_of(const StateOnDisk& found, const LoggedRounds& logged) {
  if (!found.rounds.empty()) return found.rounds.back().record.commit.epoch;
  const HeldState& state = found.snapshot.state;
  const auto made_by = state.outer_step.value == 0 ? logged.end() : logged.find(OuterStep{state.outer_step.value - 1});
  if (made_by != logged.end())
    return made_by->second.made == state.state_hash ? made_by->second.record.commit.epoch : 0;
  // Nothing says; outer.state is then what the hub had this island fetch, or go back to.
  const bool is_newest = found.snapshot.file.filename() == kOuterStateFile;
  return is_newest ? std::numeric_limits<std::uint64_t>::max() : 0;
}

StateOnDisk lead_on(const KeptStates::Entry& snapshot, const LoggedRounds& logged) {
  StateOnDisk found{snapshot, {}};
  for (;;) {
    const HeldState now = found.state();
    const auto next = logged.find(now.outer_step);
    if (next == logged.end() || next->second.from != now.state_hash) return found;
    found.rounds.push_back(next->second);
  }
}

Status take(const LoggedRound& round, const RoundLog& log, const ParameterLayout& layout, OuterStateStore& outer) {
  const HubCommit& commit = round.record.commit;
  if (outer.version() != round.round() || outer.tree_hash() != round.from) {
    return Error{ErrorCode::kCorrupt, "it was taken on another outer state"};
  }
  ATOLL_ASSIGN_OR_RETURN(const std::vector<Fragment> fragments, fragments_of(layout, round.fragments));
  const Fragment& part = fragments.at(commit.fragment.value);
  ATOLL_ASSIGN_OR_RETURN(const KeptAverage average, log.average(round.round(), commit.digest));
  if (average.canonical.size() != static_cast<std::size_t>(encoded_bytes(average.wire, part.numel))) {
    return Error{ErrorCode::kCorrupt, "its average is of another model"};
  }
  const HeldState made =
      outer.apply(part.ranges, average.wire, average.canonical, static_cast<float>(commit.outer_learning_rate),
                  static_cast<float>(commit.outer_momentum));
  if (made != round.after()) return Error{ErrorCode::kCorrupt, "it makes another outer state than it did"};
  return ok_status();
}

}  // namespace

std::vector<StateOnDisk> newest_states(const std::vector<KeptStates::Entry>& snapshots, const LoggedRounds& logged) {
  std::vector<StateOnDisk> found;
  found.reserve(snapshots.size());
  for (const KeptStates::Entry& snapshot : snapshots) found.push_back(lead_on(snapshot, logged));
  // Of two that lead to the same state, the one with fewer rounds on the way.
  std::ranges::stable_sort(found, std::greater{}, [&](const StateOnDisk& state) {
    return std::tuple(epoch_of(state, logged), state.state().outer_step, state.snapshot.state.outer_step);
  });
  return found;
}

std::optional<StateOnDisk> way_to(const HeldState& wanted, const std::vector<KeptStates::Entry>& snapshots,
                                  const LoggedRounds& logged) {
  std::optional<StateOnDisk> best;
  for (const KeptStates::Entry& snapshot : snapshots) {
    StateOnDisk way = lead_on(snapshot, logged);
    const auto last = std::ranges::find(way.rounds, wanted, &LoggedRound::after);
    if (snapshot.state == wanted) {
      way.rounds.clear();
    } else if (last != way.rounds.end()) {
      way.rounds.erase(last + 1, way.rounds.end());
    } else {
      continue;
    }
    if (!best || way.rounds.size() < best->rounds.size()) best = std::move(way);
  }
  return best;
}

std::vector<HeldState> durable_states(const std::vector<KeptStates::Entry>& snapshots, const LoggedRounds& logged) {
  const std::vector<StateOnDisk> found = newest_states(snapshots, logged);
  std::vector<HeldState> states;
  const auto add = [&](const HeldState& state) {
    const bool is_new = std::ranges::find(states, state) == states.end();
    if (is_new && states.size() < kMaxHeldStates) states.push_back(state);
  };
  if (!found.empty()) add(found.front().state());
  for (const KeptStates::Entry& snapshot : snapshots) add(snapshot.state);
  for (const StateOnDisk& each : found) {
    for (auto round = each.rounds.rbegin(); round != each.rounds.rend(); ++round) add(round->after());
  }
  std::ranges::stable_sort(states, std::greater{}, &HeldState::outer_step);
  return states;
}

Status restore(StateOnDisk way, const RoundLog& log, const ParameterLayout& layout, OuterStateStore& outer) {
  ATOLL_RETURN_IF_ERROR(outer.load(way.snapshot.file));
  for (std::size_t i = 0; i < way.rounds.size(); ++i) {
    const Status taken = take(way.rounds[i], log, layout, outer);
    if (taken.ok()) continue;
    spdlog::warn("round_log round={} error=\"{}\"", way.rounds[i].round().value, taken.error().message);
    if (outer.version() == way.rounds[i].round()) return ok_status();  // not begun
    way.rounds.resize(i);
    return restore(std::move(way), log, layout, outer);
  }
  if (!way.rounds.empty()) {
    spdlog::info("round_log round={} from={} rounds={}", outer.version().value, way.snapshot.state.outer_step.value,
                 way.rounds.size());
  }
  return ok_status();
}

}  // namespace atl
