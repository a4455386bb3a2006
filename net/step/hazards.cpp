#include "net/step/hazards.h"

#include <algorithm>

#include "net/step/operands.h"

namespace atl {
namespace {

using After = ByteHistory::After;

void later(After& a, const After& b) {
  for (std::size_t s = 0; s < kStreams; ++s) a[s] = std::max(a[s], b[s]);
}

std::size_t index_of(StreamId stream) { return static_cast<std::size_t>(stream); }

}  // namespace

ByteHistory::Pieces::iterator ByteHistory::split(Pieces& pieces, std::int64_t at) {
  auto it = pieces.upper_bound(at);
  if (it == pieces.begin()) return it;
  --it;
  if (it->first == at) return it;
  if (it->second.end <= at) return std::next(it);
  Touched behind = it->second;
  it->second.end = at;
  return pieces.emplace(at, behind).first;
}

void ByteHistory::note(const ArenaRange& range, StreamId stream, int operation, bool writes, After& after) {
  if (range.begin >= range.end) return;
  Pieces& pieces = arenas_[static_cast<std::size_t>(range.arena)];
  split(pieces, range.end);
  auto it = split(pieces, range.begin);
  std::int64_t at = range.begin;
  while (at < range.end) {
    if (it == pieces.end() || it->first > at) {  // nobody has touched what is before the next piece
      const std::int64_t end = it == pieces.end() ? range.end : std::min(range.end, it->first);
      it = pieces.emplace_hint(it, at, Touched{.end = end});
    }
    Touched& touched = it->second;
    later(after, touched.written);
    if (writes) {
      later(after, touched.read);
      touched.written = {-1, -1};
      touched.read = {-1, -1};
      touched.written[index_of(stream)] = operation;
    } else {
      touched.read[index_of(stream)] = operation;
    }
    at = touched.end;
    ++it;
  }
}

void derive_waits(std::vector<ProgramStep>& steps, int& events) {
  const int count = static_cast<int>(steps.size());
  ByteHistory history;
  // What each operation, and each stream by now, is known to come after, of every stream; counted over both runs.
  std::vector<After> known(static_cast<std::size_t>(2 * count));
  std::array<After, kStreams> reached{};
  for (After& of : reached) of.fill(-1);
  for (int i = 0; i < 2 * count; ++i) {
    ProgramStep& step = steps[static_cast<std::size_t>(i % count)];
    After after{-1, -1};
    for_each_operand(step.operation, [&](const Tensor& tensor, Access access) {
      const ArenaRange range{tensor.arena, tensor.byte, tensor.byte + tensor.extent_bytes()};
      history.note(range, step.stream, i, access != Access::kRead, after);
    });
    After& mine = reached[index_of(step.stream)];
    if (i >= count) step.waits.clear();
    for (std::size_t s = 0; s < kStreams; ++s) {
      if (s == index_of(step.stream) || after[s] <= mine[s]) continue;
      later(mine, known[static_cast<std::size_t>(after[s])]);
      if (i >= count) step.waits.push_back({.of = after[s] % count, .previous = after[s] < count});
    }
    mine[index_of(step.stream)] = i;
    known[static_cast<std::size_t>(i)] = mine;
  }
  events = 0;
  for (ProgramStep& step : steps) {
    for (StepWait& wait : step.waits) {
      ProgramStep& other = steps[static_cast<std::size_t>(wait.of)];
      if (other.event < 0) other.event = events++;
      wait.event = other.event;
    }
  }
}

}  // namespace atl
