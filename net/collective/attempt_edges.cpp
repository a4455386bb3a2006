#include "net/collective/attempt_edges.h"

namespace atl {

std::vector<AttemptEdge> edges_of(const std::vector<RingMember>& order, Schedule schedule, std::size_t rank) {
  std::vector<AttemptEdge> edges;
  if (schedule == Schedule::kDirect) {
    for (std::size_t other = 0; other < order.size(); ++other) {
      if (other != rank) edges.push_back({other, RingRole::kExchange, rank < other});
    }
    return edges;
  }
  const std::size_t next = (rank + 1) % order.size(), previous = (rank + order.size() - 1) % order.size();
  edges.push_back({next, RingRole::kSends, !order[next].dials_previous});
  edges.push_back({previous, RingRole::kReceives, order[rank].dials_previous});
  return edges;
}

}  // namespace atl
