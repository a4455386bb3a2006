#include "net/mesh/ring_order.h"

#include <algorithm>

namespace atl {

std::vector<AttemptMember> ring_order(std::vector<AttemptMember> members) {
  std::ranges::sort(members, {}, &AttemptMember::id);
  return members;
}

}  // namespace atl
