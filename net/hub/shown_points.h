// Which points of a long curve are shown: evenly over it, the first and the last among them. Pure.
#pragma once

#include <cstddef>

namespace atl {

// Point number `i` of `all`, of which at most `most` (2 or more) are shown: where the share of points up to it reaches
// another whole one of those that are.
constexpr bool is_shown(std::size_t i, std::size_t all, std::size_t most) {
  return i == 0 || all <= most || i * (most - 1) / (all - 1) != (i - 1) * (most - 1) / (all - 1);
}

}  // namespace atl
