#include "net/step/arena_layout.h"

#include <algorithm>
#include <numeric>

#include "net/step/tensor.h"

namespace atl {

ArenaLayout lay_out(std::span<const BufferLife> lives) {
  ArenaLayout layout;
  layout.places.assign(lives.size(), 0);
  std::vector<std::size_t> order(lives.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return lives[a].bytes > lives[b].bytes; });
  std::vector<std::size_t> placed;  // by place
  for (const std::size_t index : order) {
    const BufferLife& life = lives[index];
    std::int64_t place = 0;
    for (const std::size_t other : placed) {
      if (lives[other].last < life.first || life.last < lives[other].first) continue;
      if (layout.places[other] - place >= life.bytes) break;
      place = std::max(place, layout.places[other] + arena_aligned(lives[other].bytes));
    }
    layout.places[index] = place;
    layout.bytes = std::max(layout.bytes, place + arena_aligned(life.bytes));
    const auto behind = std::ranges::upper_bound(placed, place, {}, [&](std::size_t i) { return layout.places[i]; });
    placed.insert(behind, index);
  }
  return layout;
}

}  // namespace atl
