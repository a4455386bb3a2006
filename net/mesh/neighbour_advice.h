// Tells islands, while nothing is averaged, whom the next attempt would have them connect with (HubNeighbours): what an
// attempt then needs was dialled while they trained. Told again when it changes, and for each attempt anew; but not
// while links are probed, which are to be idle. One thread; owned by the RoundCoordinator.
#pragma once

#include <optional>
#include <tuple>
#include <vector>

#include "net/mesh/open_round.h"

namespace atl {

class NeighbourAdvice {
 public:
  NeighbourAdvice(CoordinatorTurn& turn, Membership& members, const MeshLinks& links)
      : turn_(turn), members_(members), links_(links) {}

  // `round`: the newest that is open; null: none. `averages`: some round is being averaged.
  void settle(const OpenRound* round, bool averages);

 private:
  // Of a member: the round, since when it is here, and whether it can be dialled.
  using Known = std::tuple<OuterStep, IslandId, Address, Clock::time_point, bool>;
  bool is_due(const OpenRound& round, const std::vector<AttemptMember>& members);
  void advise(const OpenRound& round, std::vector<AttemptMember> members);
  void tell(const HubNeighbours& all, std::size_t rank);

  CoordinatorTurn& turn_;
  Membership& members_;
  const MeshLinks& links_;
  std::vector<Known> known_;  // at the last look
  std::uint64_t reports_ = 0;
  std::optional<Clock::time_point> looked_at_;  // since the last attempt
};

}  // namespace atl
