// What an island tells beside its state, for the history and for who watches: which islands come and go, whether the
// hub answers, how each round's synchronisation goes, part by part, and what came of the round (net/control/events.h).
//
// One tells of roster and hub, on the mesh's thread; one for each sync lane tells the rest, on the lane's and, while it
// has no round, the island's (lane_link.h). `publish` may be called from all.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "net/base/deadline.h"
#include "net/collective/all_reduce.h"
#include "net/control/events.h"
#include "net/wire/mesh.h"
#include "net/wire/run_config.h"
#include "trainer/island/island_status.h"
#include "trainer/island/roster.h"

namespace atl {

class IslandNews {
 public:
  using Publish = std::function<void(const ControlEvent& event)>;

  // `publish` may be empty: nothing is told.
  // A lane's tells of its fragment.
  IslandNews(IslandId self, Publish publish, FragmentId fragment = {})
      : self_(std::move(self)), publish_(std::move(publish)), fragment_(fragment) {}

  void learn_roster(const HubRoster& roster);
  // A try to reach the hub failed; it goes on for so long, or for ever. Told once, until the hub is back; false: it
  // was.
  bool hub_lost(const std::string& why, std::optional<Seconds> tries_for);
  void hub_back();

  void inner_phase_done(Clock::time_point now);  // from now on the island waits for the others
  // The island takes part in this attempt now; `roster` names its members.
  void attempt_begins(const HubAttempt& attempt, const Roster& roster);
  void progress(const AllReduceSpec& spec, const AllReduceProgress& progress);
  // An attempt of `spec` took from `begin` to `end`.
  void attempt_done(const AllReduceSpec& spec, const std::variant<AllReduceReport, AllReduceFailure>& outcome,
                    Clock::time_point begin, Clock::time_point end);
  void committed(OuterStep round, Clock::time_point now);  // the hub's commit came
  // To the hub: what its owner likes to know, too. Any thread.
  void said(const IslandMessage& message, const RunConfig& run) const;
  void round_begins(const IslandState& state);
  void round_done(Clock::time_point now,
                  const IslandState& state);  // the outer step is taken; `state` is that after it

 private:
  void tell_parts(const AllReduceReport& report);
  void tell_links(const AllReduceReport& report);
  void tell_part(SyncPart part, Seconds duration, std::uint64_t bytes);

  const IslandId self_;
  const Publish publish_;
  // The mesh thread's:
  std::map<IslandId, RosterEntry> peers_;
  bool hub_is_lost_ = false;
  // Of a lane:
  std::optional<Clock::time_point> waits_since_;    // for the others, or for the hub's commit
  std::optional<Clock::time_point> applies_since_;  // the outer step
  OuterStep round_;
  Attempt attempt_;
  FragmentId fragment_;
  IslandState at_begin_;  // when the open round began; its counters go on from there
  bool round_is_open_ = false;
};

// The event that tells it with the state.
ControlEvent event_of(StateNews news, const IslandState& state, const RunConfig& run);

}  // namespace atl
