// The outer states that an island's disk gives back: kept states (kept_states.h), and what the logged rounds
// (net/disk/round_log.h) make of them. A round is taken on no other state than that from which it was taken first, and
// has to make the same: what it leads to is right to the last bit, or is not used. The files are the island's own;
// where somebody altered them, or its memory errs, the island says another hash than the others and is outvoted as
// ever.
//
// Which states there are is known without reading one. Restoring blocks, as long as a model and the averages take to be
// read. Any thread.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "net/disk/round_log.h"
#include "net/model/layout.h"
#include "trainer/island/kept_states.h"
#include "trainer/island/outer_state_store.h"

namespace atl {

struct StateOnDisk {
  KeptStates::Entry snapshot;
  std::vector<LoggedRound> rounds;  // upon it, in their order

  HeldState state() const { return rounds.empty() ? snapshot.state : rounds.back().after(); }
};

// As far as each kept state leads, the best first: that of the newest epoch, then of the newest outer step. What a
// rollback undid comes after what was made in its place.
std::vector<StateOnDisk> newest_states(const std::vector<KeptStates::Entry>& snapshots, const LoggedRounds& logged);
// By as few rounds as can be; nothing where no way leads there.
std::optional<StateOnDisk> way_to(const HeldState& wanted, const std::vector<KeptStates::Entry>& snapshots,
                                  const LoggedRounds& logged);
// What of it is told to the hub, the newest first and kMaxHeldStates at most: the newest, the kept ones, then as many
// of those between them as there is room for.
std::vector<HeldState> durable_states(const std::vector<KeptStates::Entry>& snapshots, const LoggedRounds& logged);

// Into `outer`. Where a round cannot be taken again, it stays at the state before, and the log says why: whoever wants
// another looks at what `outer` holds. An error when the kept state cannot be read; `outer` holds anything then.
Status restore(StateOnDisk way, const RoundLog& log, const ParameterLayout& layout, OuterStateStore& outer);

}  // namespace atl
