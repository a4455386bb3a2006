// Which operations of a program have to wait for operations of other streams: those that touch the same bytes, at least
// one of which writes. Pure. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "net/step/program.h"

namespace atl {

// Bytes [begin, end) of an arena.
struct ArenaRange {
  Arena arena = Arena::kStep;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// What has touched which bytes, operation by operation in the order in which they are enqueued.
class ByteHistory {
 public:
  // For each stream the last operation that one which touches these bytes now has to come after; -1: none. And
  // remembers that it does: `operation` is larger than all before.
  using After = std::array<int, kStreams>;
  void note(const ArenaRange& range, StreamId stream, int operation, bool writes, After& after);

 private:
  struct Touched {
    std::int64_t end = 0;
    After written{-1, -1};  // the last write, by its stream: in all of this one is not -1
    After read{-1, -1};     // reads since
  };
  using Pieces = std::map<std::int64_t, Touched>;  // by where they begin; together they cover all that was touched
  static Pieces::iterator split(Pieces& pieces, std::int64_t at);

  std::array<Pieces, kArenas> arenas_;
};

// Sets waits and events of the steps, whose tensors are placed. The fewest that will do: an order that another wait
// already brings is not asked for again. A program is taken to follow a run of its own.
void derive_waits(std::vector<ProgramStep>& steps, int& events);

}  // namespace atl
