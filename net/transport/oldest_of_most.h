// Which connection goes where a peer has more than it may: one of the fragment of which it has most, so that one
// fragment's do not push out another's.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "net/base/id.h"

namespace atl {

// Of `held`, oldest first, the first of those that `counts`, of the fragment of which there are most; else its end.
template <class Held, class FragmentOf, class Counts>
auto oldest_of_most(std::vector<Held>& held, FragmentOf fragment_of, Counts counts) {
  std::array<std::size_t, kMaxFragments> count{};
  for (const Held& one : held) count[fragment_of(one).value] += counts(one) ? 1 : 0;
  const FragmentId most{static_cast<std::uint32_t>(std::ranges::max_element(count) - count.begin())};
  return std::ranges::find_if(held, [&](const Held& one) { return counts(one) && fragment_of(one) == most; });
}

}  // namespace atl
