// Which edges between islands failed of late, by whosever word. Both ends of an edge that fails may be at fault, and
// either can make it fail; nobody can tell which. So an edge that failed several times rests, longer each time, and its
// ends go on beside others. An island that is an end of failed edges to more islands than may be liars is itself at
// fault: f liars make an honest island the end of f failed edges and no more. Kept while the hub runs, also of islands
// that left.
//
// Times are passed in; one thread; owned by MeshLinks.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "net/base/deadline.h"
#include "net/base/id.h"

namespace atl {

using IslandPair = std::pair<IslandId, IslandId>;  // the smaller id first

inline bool is_end(const IslandPair& edge, const IslandId& island) {
  return edge.first == island || edge.second == island;
}

// How many of so many islands may lie, and the others go on: one of three, and three in ten.
constexpr std::size_t most_liars(std::size_t islands) { return islands < 3 ? 0 : islands < 7 ? 1 : islands * 3 / 10; }

struct FailureCost {
  Clock::duration time{};
  std::size_t islands = 0;  // of the run
};

class EdgeFailures {
 public:
  static constexpr int kTolerated = 3;  // within remembered(): accidents happen
  // For so long at least, and so that what liars cost by it who are at fault for none yet is a tenth of the time.
  static constexpr std::chrono::hours kRemembered{1};
  static constexpr int kShare = 10;
  static constexpr int kFirstRest = 6;  // the first rest is one part in so many of that
  static constexpr int kMostDoublings = 5;
  // Rounds: who sat one out receives the next, so that turns of one would leave both ends out for good.
  static constexpr int kTurn = 8;

  // An attempt failed at this edge, which cost the others so much. True: for the kTolerated-th time of late, or after
  // it has rested. `unproven`: the end of which no work was ever accepted, where there is of the other.
  bool failed(const IslandId& a, const IslandId& b, Clock::time_point now, FailureCost cost = {},
              const std::optional<IslandId>& unproven = std::nullopt);
  // The edge is not to be used for as long as this says: twice as long as the last time, where that is not long ago.
  Clock::duration rest(const IslandId& a, const IslandId& b, Clock::time_point now);
  // More than once, and not long ago: no measurement of its ends' revives it.
  bool rests_again(const IslandId& a, const IslandId& b) const;
  // Whether it is an end of edges to so many others of `islands` that failed of late, or rest, that it is itself at
  // fault. Who left counts on neither side: liars that come and go by turns would seem to be fewer than they are.
  bool is_at_fault(const IslandId& island, const std::set<IslandId>& islands, Clock::time_point now) const;
  // Of two ends of an edge that rests one sits out where no ring does without it: that which was unproven when it first
  // failed; else the next time it is the other's turn.
  void sat_out(const IslandId& island, Clock::time_point now);
  bool is_its_turn(const IslandId& island, Clock::time_point now) const;
  // The hub itself saw that it does not do its part: of its edges that rest it is the end that sits out.
  void doubt(const IslandId& island, Clock::time_point now);
  void forget(const IslandId& island);  // it was removed from the run

 private:
  struct Edge {
    std::deque<Clock::time_point> failures;  // of late, the oldest first
    Clock::time_point rests_until{};
    int rests = 0;                             // each soon after the one before
    Clock::duration remembered = kRemembered;  // the longest of its failures
    std::optional<IslandId> unproven = {};     // when it first failed, or doubted since
    std::optional<IslandId> sat_out = {};      // the last time that one of its ends did
    int rounds_out = 0;                        // so often, one time after the other
  };

  static std::size_t most_failed_peers(std::size_t islands);
  static Clock::duration remembered(FailureCost cost);
  static Clock::duration rest_of(const Edge& edge);
  std::size_t failed_peers(const IslandId& island, const std::set<IslandId>& of, Clock::time_point now) const;

  std::map<IslandPair, Edge> edges_;
};

}  // namespace atl
