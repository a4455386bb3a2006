// The words of what a hub says of its run (hub_state.h), as words.h has those of an island. Plain values; any thread.
#pragma once

#include "net/control/words.h"

namespace atl {

// What the run does.
enum class HubPhase {
  kWaiting,  // for islands
  kTraining,
  kSyncing,
  kStandstill,
  kFinished,
  kUnknown,
};

// How the hub has an island.
enum class HubIslandState {
  kRecovering,
  kTraining,  // a member of rounds: what it does at the moment its own phase says
  kPaused,    // away, with its place kept
  kGone,
  kAway,     // enrolled, and not here: of lists of all that enrolled
  kRemoved,  // by the run's operator, for good
  kUnknown,
};

template <>
struct WordTable<HubPhase> {
  static constexpr std::array<std::string_view, 6> kWords{"waiting",    "training", "syncing",
                                                          "standstill", "finished", "unknown"};
};
template <>
struct WordTable<HubIslandState> {
  static constexpr std::array<std::string_view, 7> kWords{"recovering", "training", "paused", "gone",
                                                          "away",       "removed",  "unknown"};
};

// Of a hub's event, by its name: an island came or went, or is had in another way.
constexpr bool is_about_islands(std::string_view event) { return event.starts_with("island."); }

}  // namespace atl
