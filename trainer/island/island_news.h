// What an island tells beside its state, for the history: which islands come and go, and how the parts of each round's
// synchronisation went. Publishes "peer.up", "peer.down", "peer.link" and "sync.phase" (docs/control.md).
//
// learn_roster() on the mesh thread, the others on the loop's; `publish` may be called from both.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "net/base/deadline.h"
#include "net/collective/all_reduce.h"
#include "net/wire/mesh.h"

namespace atl {

class IslandNews {
 public:
  using Publish = std::function<void(const char* event, const nlohmann::json& data)>;

  // `publish` may be empty: nothing is told.
  IslandNews(IslandId self, Publish publish) : self_(std::move(self)), publish_(std::move(publish)) {}

  void learn_roster(const HubRoster& roster);

  void inner_phase_done(Clock::time_point now);  // from now on the island waits for the others
  // An attempt of `spec` took from `begin` to `end`.
  void attempt_done(const AllReduceSpec& spec, const std::variant<AllReduceReport, AllReduceFailure>& outcome,
                    Clock::time_point begin, Clock::time_point end);
  void committed(OuterStep round, Clock::time_point now);  // the hub's commit came
  void round_done(Clock::time_point now);                  // the outer step is taken

 private:
  void tell_parts(const AllReduceReport& report);
  void tell_links(const AllReduceReport& report);
  void tell_phase(const char* phase, Seconds duration, std::uint64_t bytes);

  const IslandId self_;
  const Publish publish_;
  std::map<IslandId, RosterEntry> peers_;  // the mesh thread's
  // The loop's:
  std::optional<Clock::time_point> waits_since_;    // for the others, or for the hub's commit
  std::optional<Clock::time_point> applies_since_;  // the outer step
  OuterStep round_;
  Attempt attempt_;
};

}  // namespace atl
