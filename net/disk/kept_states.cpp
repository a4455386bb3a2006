#include "net/disk/kept_states.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "net/base/new_file.h"
#include "net/disk/checkpoint_directory.h"

namespace atl {
namespace {

constexpr std::uint64_t kDaySeconds = 86'400;

// The state it makes lies in a history, which is known by the epoch of the round that made it.
std::uint64_t epoch_of(const StateOnDisk& found, bool is_newest, const LoggedRounds& logged) {
  const OuterStep step = found.state.outer_step;
  const auto made_by = step.value == 0 ? logged.end() : logged.find(OuterStep{step.value - 1});
  if (made_by != logged.end())
    return made_by->second.made == found.state.state_hash ? made_by->second.record.commit.epoch : 0;
  // Nothing says; the newest is then what the hub had this island fetch, or go back to.
  return is_newest ? std::numeric_limits<std::uint64_t>::max() : 0;
}

// Every round that leads on from its oldest chunk. Nothing where it cannot be made what it says.
std::optional<StateOnDisk> lead_on(const KeptState& kept, const LoggedRounds& logged) {
  StateOnDisk found{kept, {}, kept.state()};
  const OuterStep own = kept.state().outer_step;
  for (OuterStep step = kept.info.oldest_chunk();; ++step.value) {
    const bool is_before = step < own;
    const auto round = logged.find(step);
    const std::string* before = !found.rounds.empty() ? &found.rounds.back().made : nullptr;
    if (step == own) before = &kept.state().state_hash;
    const bool fits = round != logged.end() && (before == nullptr || round->second.from == *before);
    if (!fits && is_before) return std::nullopt;
    if (!fits) return found;
    found.rounds.push_back(round->second);
    const HeldState made = round->second.after();
    if (made.outer_step == own && made.state_hash != kept.state().state_hash) return std::nullopt;
    if (!is_before) found.state = made;
  }
}

// The same way, to one of the states on it.
bool shorten_to(const HeldState& wanted, StateOnDisk& way) {
  const auto last = std::ranges::find(way.rounds, wanted, &LoggedRound::after);
  const bool is_made = last != way.rounds.end() && wanted.outer_step >= way.snapshot.info.newest_chunk();
  if (way.snapshot.state() != wanted && !is_made) return false;
  std::erase_if(way.rounds, [&](const LoggedRound& round) { return round.round() >= wanted.outer_step; });
  way.state = wanted;
  return true;
}

bool is_under_two_names(const KeptState& state, const std::vector<KeptState>& kept) {
  return std::ranges::any_of(kept, [&](const KeptState& other) {
    return other.state() == state.state() && other.info.number > state.info.number;
  });
}

// The newest of each day, so many days back.
std::set<std::filesystem::path> of_days(const std::vector<KeptState>& kept, std::uint32_t days) {
  std::map<std::uint64_t, const KeptState*> of_day;
  for (const KeptState& state : kept) {
    const KeptState*& newest = of_day[state.info.saved_at / kDaySeconds];
    if (newest == nullptr || newest->info.number < state.info.number) newest = &state;
  }
  std::set<std::filesystem::path> found;
  for (const auto& [day, state] : of_day) {
    if (day + days >= of_day.rbegin()->first && days > 0) found.insert(state->path);
  }
  return found;
}

// Under another name first: what is left by a process that dies meanwhile is called no state.
void remove_state(const KeptState& state) {
  const std::filesystem::path away = state.path.parent_path() / kRemovedSnapshot;
  const Status renamed = rename_and_flush(state.path, away);
  std::error_code failed;
  if (renamed.ok()) std::filesystem::remove_all(away, failed);
  if (!renamed.ok() || failed) {
    spdlog::warn("kept_state file={} error=\"{}\"", state.path.string(),
                 renamed.ok() ? failed.message() : renamed.error().message);
  }
}

}  // namespace

std::vector<KeptState> kept_states(const std::filesystem::path& directory) {
  std::vector<KeptState> found;
  const auto paths = outer_state_files(directory);
  if (!paths.ok()) return found;
  for (const std::filesystem::path& path : *paths) {
    Result<SnapshotInfo> info = peek_snapshot(path);
    if (info.ok()) found.push_back({path, std::move(*info)});
  }
  std::ranges::sort(found, std::greater{},
                    [](const KeptState& kept) { return std::tuple(kept.state().outer_step, kept.info.number); });
  return found;
}

const KeptState* newest_of(const std::vector<KeptState>& kept) {
  const auto newest = std::ranges::max_element(kept, {}, [](const KeptState& state) { return state.info.number; });
  return newest == kept.end() ? nullptr : &*newest;
}

std::vector<StateOnDisk> newest_states(const std::vector<KeptState>& kept, const LoggedRounds& logged) {
  std::vector<StateOnDisk> found;
  const KeptState* newest = newest_of(kept);
  for (const KeptState& snapshot : kept) {
    if (auto way = lead_on(snapshot, logged)) found.push_back(std::move(*way));
  }
  // Of two that lead to the same state, the one with fewer rounds on the way.
  std::ranges::stable_sort(found, std::greater{}, [&](const StateOnDisk& way) {
    const bool is_newest = way.snapshot.info.number == newest->info.number;
    return std::tuple(epoch_of(way, is_newest, logged), way.state.outer_step, way.snapshot.state().outer_step);
  });
  return found;
}

std::optional<StateOnDisk> way_to(const HeldState& wanted, const std::vector<KeptState>& kept,
                                  const LoggedRounds& logged) {
  std::optional<StateOnDisk> best;
  for (const KeptState& snapshot : kept) {
    std::optional<StateOnDisk> way = lead_on(snapshot, logged);
    if (!way || !shorten_to(wanted, *way)) continue;
    if (!best || way->rounds.size() < best->rounds.size()) best = std::move(way);
  }
  return best;
}

std::optional<StateOnDisk> way_to(OuterStep wanted, const std::vector<KeptState>& kept, const LoggedRounds& logged) {
  for (const StateOnDisk& way : newest_states(kept, logged)) {
    if (way.state.outer_step == wanted) return way_to(way.state, kept, logged);
    if (way.snapshot.state().outer_step == wanted) return way_to(way.snapshot.state(), kept, logged);
    const auto made = std::ranges::find(way.rounds, wanted, [](const LoggedRound& r) { return r.after().outer_step; });
    if (made == way.rounds.end()) continue;
    if (auto found = way_to(made->after(), kept, logged)) return found;
  }
  return std::nullopt;
}

bool rounds_lead(OuterStep from, const HeldState& to, const LoggedRounds& logged) {
  const LoggedRound* before = nullptr;
  for (; from < to.outer_step; ++from.value) {
    const auto round = logged.find(from);
    if (round == logged.end() || (before != nullptr && round->second.from != before->made)) return false;
    before = &round->second;
  }
  return before == nullptr || before->after() == to;
}

std::vector<HeldState> durable_states(const std::vector<KeptState>& kept, const LoggedRounds& logged) {
  const std::vector<StateOnDisk> found = newest_states(kept, logged);
  std::vector<HeldState> states;
  const auto add = [&](const HeldState& state) {
    const bool is_new = std::ranges::find(states, state) == states.end();
    if (is_new && states.size() < kMaxHeldStates) states.push_back(state);
  };
  if (!found.empty()) add(found.front().state);
  for (const KeptState& snapshot : kept) {
    const auto is_it = [&](const StateOnDisk& way) { return way.snapshot.path == snapshot.path; };
    if (std::ranges::any_of(found, is_it)) add(snapshot.state());
  }
  for (const StateOnDisk& each : found) {
    for (auto round = each.rounds.rbegin(); round != each.rounds.rend(); ++round) {
      if (round->after().outer_step >= each.snapshot.info.newest_chunk()) add(round->after());
    }
  }
  std::ranges::stable_sort(states, std::greater{}, &HeldState::outer_step);
  return states;
}

// The newest, the one before it, then those at validated rounds, then the others.
RetentionPlan plan_retention(const std::vector<KeptState>& all, const LoggedRounds& logged,
                             const Retention& retention) {
  RetentionPlan plan;
  const KeptState* newest = newest_of(all);
  if (newest == nullptr) return plan;
  const HeldState now = newest->state();
  const auto comes_before = [&](const KeptState& kept) { return kept.state().outer_step < now.outer_step; };
  const auto one_before = std::ranges::find_if(all, comes_before);
  const auto last = one_before == all.end() ? now : one_before->state();
  const auto rank = [&](const KeptState& kept) {
    if (is_under_two_names(kept, all)) return 5;
    if (kept.state() == now) return 0;
    if (!comes_before(kept)) return 4;
    if (kept.state() == last) return 1;
    return retention.anchor_every > 0 && kept.state().outer_step.value % retention.anchor_every == 0 ? 2 : 3;
  };
  std::set<std::filesystem::path> stay = of_days(all, retention.days);
  for (const OuterStep round : retention.rounds) {
    const auto way = way_to(round, all, logged);
    if (!way) continue;
    stay.insert(way->snapshot.path);
    for (const LoggedRound& needed : way->rounds) plan.needed_rounds.insert(needed.round());
  }
  std::vector<KeptState> ranked = all;
  std::ranges::stable_sort(ranked, {}, rank);
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    const bool stays = stay.contains(ranked[i].path) || i < retention.keep;
    if (stays && rank(ranked[i]) < 5) {
      const SnapshotInfo& info = ranked[i].info;
      for (OuterStep step = info.oldest_chunk(); step < info.state.outer_step; ++step.value) {
        plan.needed_rounds.insert(step);
      }
    } else {
      plan.remove.push_back(std::move(ranked[i]));
    }
  }
  return plan;
}

void remove_states(const std::filesystem::path& directory, const Retention& retention, const RoundLog& log) {
  const RetentionPlan plan = plan_retention(kept_states(directory), log.rounds(), retention);
  std::error_code ignored;
  std::filesystem::remove_all(directory / kRemovedSnapshot, ignored);  // of a process that died
  for (const KeptState& state : plan.remove) remove_state(state);
}

void remove_rounds(const std::filesystem::path& directory, const Retention& retention, const RoundLog& log) {
  const std::vector<KeptState> kept = kept_states(directory);
  const KeptState* newest = newest_of(kept);
  if (newest == nullptr) return;
  const RetentionPlan plan = plan_retention(kept, log.rounds(), retention);
  OuterStep oldest = newest->state().outer_step;
  for (const KeptState& state : kept) oldest = std::min(oldest, state.info.oldest_chunk());
  log.prune(oldest, newest->state().outer_step, most_logged_bytes(newest->info.numel), plan.needed_rounds);
}

}  // namespace atl
