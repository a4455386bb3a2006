// The ring of one attempt: its members in order, by what is known of their links. Pure; any thread.
#pragma once

#include <vector>

#include "net/mesh/link_matrix.h"

namespace atl {

struct RingChoice {
  std::vector<AttemptMember> order;
  std::vector<IslandId> sits_out;  // no ring holds all members: attempt again without these
};

// The order of the previous attempt stays while it is nearly as fast as the best, for connections that are warm are
// worth more than the difference. Where nothing is known of the links (or for more islands than can be ordered): by
// island id, the same for the same members, whoever came first.
// `first_out`: who sits out where somebody must, the first of them first; empty: those with the fewest tokens.
RingChoice choose_ring(std::vector<AttemptMember> members, const LinkMatrix& links,
                       const std::vector<IslandId>& previous, Clock::time_point now,
                       const std::vector<IslandId>& first_out = {});

// By rank: what is known of the edge to the next one, bytes/s, 0 where nothing is. Empty when nothing is of any.
std::vector<double> known_rates(const std::vector<AttemptMember>& order, const LinkMatrix& links,
                                Clock::time_point now);

}  // namespace atl
