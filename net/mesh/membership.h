// Which islands are members of the run, whether they are here, and what all are told of each other (the roster).
// One thread; owned by the RoundCoordinator.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "net/base/result.h"
#include "net/mesh/coordinator_turn.h"
#include "net/mesh/delay_budget.h"
#include "net/mesh/mesh_island.h"

namespace atl {

class Membership {
 public:
  using Islands = std::map<IslandId, MeshIsland>;

  explicit Membership(CoordinatorTurn& turn);

  Islands& islands() { return islands_; }
  const Islands& islands() const { return islands_; }
  bool contains(const IslandId& id) const { return islands_.contains(id); }
  MeshIsland* find(const IslandId& id);
  const MeshIsland* find(const IslandId& id) const;
  bool is_here(const IslandId& id) const;  // a member, and connected
  bool is_anybody_here() const { return count_here() > 0; }
  std::size_t count_here() const;
  bool is_anybody_recovering() const;                             // of those that are here
  std::string names(const std::vector<IslandId>& islands) const;  // for people

  // An error says why it may not.
  Status may_enter(const IslandConnected& event) const;
  struct Entered {
    MeshIsland& island;
    bool is_new = false;
    bool moved = false;  // its inbound port is another than before
  };
  // It is here; what else is known of one that comes back stays.
  Entered enter(const IslandConnected& event);
  void leave(MeshIsland& island);  // it is away, and keeps its place
  void erase(const IslandId& id);

  std::vector<IslandId> silent() const;  // here, and without a heartbeat for too long
  // Of one that is here so little was heard of late that a peer's word that it is silent is believed, until it comes
  // again: a heartbeat and a half, and half of what makes it dead.
  bool is_overdue(const MeshIsland& island) const;
  std::vector<IslandId> lost() const;  // away for longer than a place is kept

  // What the others may wait for each.
  DelayBudget& budget() { return budget_; }
  const DelayBudget& budget() const { return budget_; }
  // Which of these that train owe others more than they have saved, and can be done without: most of them stay, and the
  // quorum.
  std::set<IslandId> debtors(const std::vector<IslandId>& trainers) const;
  double seconds_in_debt(const IslandId& island) const;  // from now on, as many as are here now

  // How long it took until most of three trainers or more were ready, in the middle of the last rounds.
  void note_inner_phase(Clock::duration time);
  std::optional<Clock::duration> usual_inner_phase() const { return middle(inner_phases_); }
  // The same of how long it took until most of three trainers or more had an average, made as a whole.
  void note_average(Clock::duration time);
  std::optional<Clock::duration> usual_average() const { return middle(averages_); }

  HubRoster roster() const;
  void note_change() { roster_changed_ = true; }
  void send_roster();             // to all that are here
  void send_roster_when_due();    // if it changed, once a second
  void send_roster_if_changed();  // now: attempts say who, the roster says where
  void send_roster_if_changed(const IslandId& to);
  // Whoever comes learns at once who is here, also where the others are told a little later.
  void send_roster_unless_due(const IslandId& to);

 private:
  using Times = std::deque<Clock::duration>;  // of late
  static void note(Times& times, Clock::duration time);
  static std::optional<Clock::duration> middle(const Times& of);

  CoordinatorTurn& turn_;
  Islands islands_;
  std::map<IslandId, Conduct> gone_;  // of those that left
  DelayBudget budget_;
  Times inner_phases_, averages_;
  bool roster_changed_ = false;  // since it was sent to all
  Clock::time_point roster_sent_;
};

}  // namespace atl
