// One island as the hub's RoundCoordinator knows it. Plain values.
#pragma once

#include <optional>
#include <string>

#include "net/base/deadline.h"
#include "net/mesh/lease_book.h"
#include "net/wire/mesh.h"

namespace atl {

struct MeshIsland {
  // Recovering: does not hold the committed outer state (or nobody has confirmed yet that it does).
  enum class Standing { kRecovering, kTraining };
  // In the open round. A receiver trains nothing and weighs 0, but takes the outer step with the others.
  enum class Part { kNone, kTrainer, kReceiver };

  RosterEntry entry;
  Standing standing = Standing::kRecovering;

  bool connected = false;
  Clock::time_point last_heard;
  Clock::time_point dialled_at;       // when the hub last asked for its port to be tried
  bool paused = false;                // by its owner: neither waited for nor dead
  Clock::time_point disconnected_at;  // while not connected; its place is kept for RunConfig::dead_after
  Clock::time_point awaited_until;    // an attempt waits so long for one that is away, or receives and is not ready

  // Recovering:
  std::optional<OuterStep> told_to_recover;  // which outer state it was last told to fetch or make
  std::string recovered_hash;                // what it now says to hold of the committed outer step; empty: nothing yet
  int wrong_recoveries = 0;                  // in a row

  // In the open round:
  Part part = Part::kNone;
  HubRoundBegin begun;               // as it was told
  std::optional<IslandReady> ready;  // since its last (re)connection
  bool sits_out = false;             // blamed for failed attempts: recovers after the commit

  int non_finite_rounds = 0;  // in a row
  int strikes = 0;            // rounds in a row that left its work out, for what it gave or said
  std::string left_out_for;   // why; empty: it takes part
  std::string noticed;        // what it was told last (HubNotice)
  std::vector<HeldState> durable;
  std::optional<HeldState> claimed;  // the outer state that it last said to hold, whatever that is worth
  std::uint32_t rounds_accepted = 0;
  std::optional<IslandHeartbeat> heartbeat;

  const IslandId& id() const { return entry.id; }
  LeaseRange lease() const { return {begun.lease_first_sequence, begun.lease_sequences}; }
};

}  // namespace atl
