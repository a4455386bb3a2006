// The outer states that are kept on an island's disk (snapshot.h), and which of them, and of the logged rounds
// (round_log.h), are worth their room: the newest, the one before it, older ones at rounds that were validated; and
// what the owner asks for beside what the run does. Looking at them reads their indexes alone. Any thread; one at a
// time removes.
#pragma once

#include <filesystem>
#include <set>
#include <vector>

#include "net/disk/round_log.h"
#include "net/disk/snapshot.h"

namespace atl {

struct KeptState {
  std::filesystem::path path;
  SnapshotInfo info;
  const HeldState& state() const { return info.state; }
};

// Those that are whole by what they say of themselves, the highest outer step first.
std::vector<KeptState> kept_states(const std::filesystem::path& checkpoint_directory);
// The one that took its place last: with none, nullptr. It may be of an earlier outer step than others, after a
// rollback.
const KeptState* newest_of(const std::vector<KeptState>& kept);

// A kept state with the rounds that lead on from it. Rounds from its oldest chunk on, in their order.
struct StateOnDisk {
  KeptState snapshot;
  std::vector<LoggedRound> rounds;
  HeldState state;  // to which they lead
};

// As far as each kept state leads, the best first: that of the newest epoch, then of the newest outer step. What a
// rollback undid comes after what was made in its place. One whose chunks need rounds that are not logged, or not in
// one history with it, leads nowhere.
std::vector<StateOnDisk> newest_states(const std::vector<KeptState>& kept, const LoggedRounds& logged);
// By as few rounds as can be; nothing where no way leads there.
std::optional<StateOnDisk> way_to(const HeldState& wanted, const std::vector<KeptState>& kept,
                                  const LoggedRounds& logged);
// The same for an outer step, in the history that counts most.
std::optional<StateOnDisk> way_to(OuterStep wanted, const std::vector<KeptState>& kept, const LoggedRounds& logged);
// Whether the rounds from this outer step to that of the state are logged, each upon the one before it, and make it.
bool rounds_lead(OuterStep from, const HeldState& to, const LoggedRounds& logged);
// What of it is told to the hub, the newest first and kMaxHeldStates at most: the newest, the kept ones, then as many
// of those between them as there is room for.
std::vector<HeldState> durable_states(const std::vector<KeptState>& kept, const LoggedRounds& logged);

// ---- what stays

struct Retention {
  std::uint32_t keep = 1;          // states in all, at least 1, beside those of days and rounds
  std::uint32_t anchor_every = 0;  // of the older ones, those whose outer step is a multiple of it stay longest
  std::uint32_t days = 0;          // the newest of each day (UTC) before the newest's, so many days back, stays, too
  std::set<OuterStep> rounds;      // these outer steps can be come back to as long as they are named
};

struct RetentionPlan {
  std::vector<KeptState> remove;
  std::set<OuterStep> needed_rounds;  // by chunks of states that stay, or to named outer steps
};

// Never the newest; first what does not come before it: a rollback undid that.
RetentionPlan plan_retention(const std::vector<KeptState>& kept, const LoggedRounds& logged,
                             const Retention& retention);
// Carries it out, as far as states go. What cannot be removed is told in the log.
void remove_states(const std::filesystem::path& checkpoint_directory, const Retention& retention, const RoundLog& log);
// The rounds that no state needs which is there now, as RoundLog::prune says: states may have come since some were
// removed.
void remove_rounds(const std::filesystem::path& checkpoint_directory, const Retention& retention, const RoundLog& log);

}  // namespace atl
