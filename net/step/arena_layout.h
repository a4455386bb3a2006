// Places for buffers that live for a while: those whose lives overlap get bytes of their own. Pure. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace atl {

struct BufferLife {
  std::int64_t bytes = 0;
  int first = 0;  // the steps at which it is alive, both ends included
  int last = 0;
};

struct ArenaLayout {
  std::vector<std::int64_t> places;  // of each buffer, in bytes, aligned
  std::int64_t bytes = 0;
};

// Largest first, each at the lowest place that is free for the whole of its life (offline bin packing as in
// arXiv:2001.03288, "greedy by size").
ArenaLayout lay_out(std::span<const BufferLife> lives);

}  // namespace atl
