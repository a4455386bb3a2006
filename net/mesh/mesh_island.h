// One island as the hub knows it, whatever round it works on (net/mesh/round_parts.h). Plain values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "net/base/deadline.h"
#include "net/wire/mesh.h"

namespace atl {

// What an island has done so far, which it does not leave behind by leaving. Since the hub started.
struct Conduct {
  int wrong_recoveries = 0;   // in a row
  int non_finite_rounds = 0;  // in a row
  int strikes = 0;            // rounds in a row that left its work out, for what it gave or said
  std::uint32_t rounds_accepted = 0;
};

struct MeshIsland {
  // Recovering: does not hold the committed outer state (or nobody has confirmed yet that it does).
  enum class Standing { kRecovering, kTraining };

  RosterEntry entry;
  Standing standing = Standing::kRecovering;

  bool connected = false;
  Clock::time_point last_heard;
  Clock::time_point dialled_at;       // when the hub last asked for its port to be tried
  bool paused = false;                // by its owner: neither waited for nor dead
  Clock::time_point disconnected_at;  // while not connected; its place is kept for RunConfig::dead_after

  // Recovering:
  Clock::time_point recovers_since;          // and is here
  bool catches_up = false;                   // by commits that it was sent again
  std::optional<OuterStep> told_to_recover;  // which outer state it was last told to fetch or make
  bool recovers_from_store = false;          // was told to: nobody that was here held it
  std::string recovered_hash;                // what it now says to hold of the committed outer step; empty: nothing yet
  std::optional<Clock::time_point> left_behind_since;  // it was in no commit since

  Conduct conduct;
  std::string left_out_for;  // why its work was left out; empty: it takes part
  std::string noticed;       // what it was told last (HubNotice)
  std::vector<HeldState> durable;
  std::optional<OuterStep> told_safe;            // HubSafe, since it came
  std::optional<HubNeighbours> told_neighbours;  // since it came, and since the last attempt
  bool can_upload = false;
  bool dials_ahead = false;
  std::optional<HeldWork> work;      // with which it came
  std::optional<HeldState> claimed;  // the outer state that it last said to hold, whatever that is worth
  std::optional<IslandHeartbeat> heartbeat;

  const IslandId& id() const { return entry.id; }
  bool trains() const { return connected && standing == Standing::kTraining; }
};

}  // namespace atl
