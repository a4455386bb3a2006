#include "app/cli/demo/demo_history.h"

#include <algorithm>
#include <utility>

namespace atl {
namespace {

bool moved(const HubState& before, const HubState& after) {
  if (before.outer_step != after.outer_step || before.phase != after.phase) return true;
  if (before.islands.size() != after.islands.size()) return true;
  for (std::size_t i = 0; i < after.islands.size(); ++i) {
    if (before.islands[i].inner_step != after.islands[i].inner_step ||
        before.islands[i].phase != after.islands[i].phase) {
      return true;
    }
  }
  return false;
}

}  // namespace

void DemoHistory::observe(const HubState& state, double now_seconds) {
  if (moved(state_, state)) last_progress_ = now_seconds;
  if (!training_since_ && state.round_open) training_since_ = last_commit_ = now_seconds;
  if (state.outer_step > state_.outer_step && (!end_ || state.outer_step <= *end_)) last_commit_ = now_seconds;
  for (const HubState::Round& round : state.rounds) {
    if (!end_ || round.round < *end_) rounds_[round.round] = round;
  }
  for (const HubState::Island& island : state.islands) {
    if (figures_count(state)) remember_island(island);
  }
  for (HubState::Island& known : islands_) {
    if (state.finished) break;  // they went because all is done
    const bool listed = std::any_of(state.islands.begin(), state.islands.end(),
                                    [&](const HubState::Island& island) { return island.id == known.id; });
    if (!listed) known.state = HubIslandState::kGone;
  }
  for (const auto& validation : {state.first_validation, state.last_validation}) {
    if (!validation || (end_ && validation->outer_step > *end_)) continue;
    if (validations_.empty() || validations_.back().outer_step < validation->outer_step)
      validations_.push_back(*validation);
  }
  state_ = state;
}

// The bytes of a round are sent while it is syncing: until then an island's figures are still those of the last one.
bool DemoHistory::figures_count(const HubState& state) const {
  return !end_ || state.outer_step < *end_ || (state.outer_step == *end_ && state.phase != HubPhase::kSyncing);
}

void DemoHistory::remember_island(const HubState::Island& island) {
  const auto known = std::find_if(islands_.begin(), islands_.end(),
                                  [&](const HubState::Island& candidate) { return candidate.id == island.id; });
  if (known == islands_.end()) {
    const auto place = std::find_if(islands_.begin(), islands_.end(),
                                    [&](const HubState::Island& other) { return other.name > island.name; });
    islands_.insert(place, island);
  } else if (island.is_gone()) {
    known->state = island.state;  // the hub forgets the figures of the gone; their work was done all the same
  } else {
    const HubState::Island before = std::exchange(*known, island);
    // At the end the island itself was asked, after this heartbeat.
    if (end_) known->bytes_sent = std::max(known->bytes_sent, before.bytes_sent);
  }
}

void DemoHistory::correct(const IslandState& island) {
  for (HubState::Island& known : islands_) {
    if (known.id != island.island) continue;
    known.bytes_sent = std::max(known.bytes_sent, island.bytes_sent);
    known.inner_seconds = std::max(known.inner_seconds, island.inner_seconds);
    known.sync_seconds = std::max(known.sync_seconds, island.sync_seconds);
  }
}

std::uint64_t DemoHistory::committed_tokens() const {
  std::uint64_t tokens = 0;
  for (const auto& [number, round] : rounds_) tokens += round.tokens;
  return tokens;
}

double DemoHistory::tokens_per_second() const {
  const double seconds = seconds_to_last_commit();
  return seconds > 0 ? static_cast<double>(committed_tokens()) / seconds : 0;
}

std::uint64_t DemoHistory::bytes_sent() const {
  std::uint64_t bytes = 0;
  for (const HubState::Island& island : islands_) bytes += island.bytes_sent;
  return bytes;
}

double DemoHistory::data_parallel_bytes(const DemoRunFacts& facts) const {
  double bytes = 0;
  for (const auto& [number, round] : rounds_) {
    if (round.members == 0 || facts.tokens_per_step == 0) continue;
    const double steps_of_all = static_cast<double>(round.tokens) / static_cast<double>(facts.tokens_per_step);
    bytes += steps_of_all * 2 * (round.members - 1) / round.members * 4 * static_cast<double>(facts.parameters);
  }
  return bytes;
}

double DemoHistory::compute_utilisation() const {
  double inner = 0, all = 0;
  for (const HubState::Island& island : islands_) {
    inner += island.inner_seconds;
    all += island.inner_seconds + island.sync_seconds;
  }
  return all > 0 ? inner / all : 0;
}

std::optional<bool> DemoHistory::outer_hashes_equal() const {
  std::optional<bool> verdict;
  bool all_known = true;
  for (const auto& [number, round] : rounds_) {
    if (round.outer_hashes_equal == false) return false;
    if (!round.outer_hashes_equal) all_known = false;  // not every island has reported
    verdict = round.outer_hashes_equal;
  }
  return all_known ? verdict : std::nullopt;
}

}  // namespace atl
