// The links between islands as the hub uses them: who can be dialled, which are worth a probe, which ring an attempt
// takes, and which edges failed or altered bytes. What is known outlives the rounds. One thread; owned by the
// RoundCoordinator.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "net/mesh/coordinator_turn.h"
#include "net/mesh/digest_inquiry.h"
#include "net/mesh/link_matrix.h"
#include "net/mesh/membership.h"
#include "net/mesh/ring_choice.h"
#include "net/mesh/schedule_choice.h"

namespace atl {

class MeshLinks {
 public:
  explicit MeshLinks(CoordinatorTurn& turn) : turn_(turn) {}

  bool dialable(const IslandId& island) const { return matrix_.dialable(island); }
  void dialled(const MeshIsland& island, const IslandDialled& event);
  void dial(MeshIsland& island);  // until the answer comes it counts as before
  void dial_if_hidden(MeshIsland& island);
  // Whoever could not be dialled may have opened a port since.
  void dial_again(const std::vector<MeshIsland*>& islands);
  void probe(const std::vector<IslandId>& islands);
  // An island speaks of its own edges only, and only of those to islands that are there.
  void report(const IslandId& island, const IslandLinkReport& report, const Membership& members);
  // That it carried no more explains why an attempt took longer than longest_seconds(), and the next one has the time
  // that it needs. Not so where it is no slower than that took it for, or slower than anybody is waited for, nor twice
  // in an hour.
  bool has_got_slow(const IslandId& from, const IslandId& to, double bytes_per_second);
  void forget(const IslandId& island) { matrix_.forget(island); }
  std::uint64_t reports() const { return reports_; }  // that came
  // Islands may be measuring links, which are to be idle.
  bool probes() const { return turn_.now() < probes_until_; }

  // An attempt's ring. Whoever is in `sits_out` is to be left out, and the ring chosen anew. Where somebody must be,
  // that is an island whose turn it is (EdgeFailures), then the one with the fewest tokens.
  RingChoice choose(std::vector<AttemptMember> members) const;
  void use(const std::vector<AttemptMember>& order);  // the next choice compares with it
  std::vector<double> known_rates(const std::vector<AttemptMember>& order) const;
  // Below 8 bits everybody dials every owner of a chunk. Where a member cannot be dialled, the ring sums hop by hop.
  WireFormat wire_for(const std::vector<AttemptMember>& members) const;

  // By which schedule those of `order` average so many encoded bytes (schedule_choice.h); where it is directly, the
  // order begins with whom it must begin with. The next choice compares with it.
  Schedule choose_schedule(std::vector<AttemptMember>& order, double bytes, WireFormat wire);
  // Which that would be: nothing is chosen.
  Schedule expected_schedule(std::vector<AttemptMember>& order, double bytes, WireFormat wire) const;
  double longest_seconds(const std::vector<AttemptMember>& order, double bytes) const;
  // It failed or left a member behind, and not for a death: no direct exchange for ten minutes, and for twice as long
  // when it fails again. Whatever one member says keeps the run from nothing but that.
  void direct_failed();
  void direct_worked();

  // An attempt failed at this edge. True: too often of late.
  bool edge_failed(const IslandPair& edge, const Membership& all, Clock::duration cost);
  // An island of so many whose edges to more of them failed than may be liars.
  bool is_at_fault(const IslandId& island, const std::set<IslandId>& islands) const {
    return failures_.is_at_fault(island, islands, turn_.now());
  }
  // False, and the edge is as before, when no ring of all members does without it.
  bool avoid_edge(const IslandPair& edge, std::vector<AttemptMember> members, WireFormat wire);
  // It rests, and where no ring does without it one of its ends sits out: by turns, round by round.
  void declare_dead(const IslandId& a, const IslandId& b);
  bool is_dead(const IslandId& a, const IslandId& b) const { return matrix_.is_dead(a, b, turn_.now()); }
  void doubt(const IslandId& island) { failures_.doubt(island, turn_.now()); }
  void sat_out(const IslandId& island) { failures_.sat_out(island, turn_.now()); }
  void revive() { matrix_.revive(); }
  BadEdges& bad_edges() { return bad_edges_; }
  void forget_removed(const IslandId& island);  // by the run's operator

 private:
  std::vector<IslandId> take_apart(std::vector<AttemptMember>& members) const;

  CoordinatorTurn& turn_;
  LinkMatrix matrix_;
  std::vector<IslandId> last_order_;  // of the last attempt
  Schedule last_schedule_ = Schedule::kRing;
  int direct_failures_ = 0;  // in a row
  Clock::time_point direct_again_at_{};
  std::uint64_t reports_ = 0;
  Clock::time_point probes_until_{};
  EdgeFailures failures_;                             // of all rounds since the hub started
  BadEdges bad_edges_;                                // likewise
  std::map<IslandPair, Clock::time_point> got_slow_;  // the last time that an edge did
};

}  // namespace atl
