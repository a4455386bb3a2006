// Whom a member of an attempt has connections with, and which end of each edge dials. What an attempt does and what is
// dialled ahead of it go by this alone: where two members thought differently of it, both would dial, or neither. Pure;
// any thread.
//
// In a ring the earlier rank dials, unless the later one dials_previous, as one does that nobody can dial; bytes flow
// the same way. Of two such next to each other the later dials, in vain: who chooses the order keeps them apart
// (ring_order.h). In an exchange the lower rank of each pair dials, whatever dials_previous says: only rank 0, which
// nobody dials, may be one that nobody can dial (schedule_choice.h).
#pragma once

#include <cstddef>
#include <vector>

#include "net/collective/ring_member.h"
#include "net/wire/ring_frame.h"
#include "net/wire/schedule.h"

namespace atl {

// One end of an edge.
struct AttemptEdge {
  std::size_t peer = 0;  // its rank
  RingRole role = RingRole::kSends;
  bool is_dialled = false;  // from this end; else the peer dials it

  bool operator==(const AttemptEdge&) const = default;
};

// Of the member at `rank`, at least two members. Of a ring two: that to the next rank, then that from the previous one,
// both with the same peer where there are no others. `order` may then be the member alone with its neighbours. Of an
// exchange one with each other member, by rank.
std::vector<AttemptEdge> edges_of(const std::vector<RingMember>& order, Schedule schedule, std::size_t rank);

}  // namespace atl
