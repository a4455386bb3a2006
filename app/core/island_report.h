// What the desktop app knows of this machine's island at one moment: the monitor makes them, views show them. Plain
// values; any thread.
#pragma once

#include <optional>
#include <string>

#include "net/base/deadline.h"
#include "net/control/island_state.h"

namespace atl {

// How far the last look got.
enum class IslandLink {
  kUnknown,     // nobody looked yet
  kNotJoined,   // the home has no join.json
  kNotRunning,  // joined, but no trainer answers
  kConnected,   // the trainer answered
  kSilent,      // a trainer is there, but did not answer in time
  kFailed,      // anything else: `problem` says what
};

struct IslandReport {
  IslandLink link = IslandLink::kUnknown;
  std::string run_name;              // of join.json or of the trainer; empty when not joined
  std::string problem;               // of kFailed: what happened and what to do
  std::optional<IslandState> state;  // the last that the trainer said, however old; none when not joined
  Clock::time_point state_time;      // when it was said
};

// From this age on, what is shown must not look live.
inline constexpr std::chrono::seconds kStaleAfter{5};

// Of the state; empty when there is none.
std::optional<Seconds> age_of(const IslandReport& report, Clock::time_point now);
// What the state says is true now: the trainer answers, and did so less than kStaleAfter ago.
bool is_live(const IslandReport& report, Clock::time_point now);

}  // namespace atl
