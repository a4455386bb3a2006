// How fine each part of an axis was fetched, so that a view asks only for what is finer. Bounded. Plain values.
#pragma once

#include <cstddef>
#include <vector>

namespace atl {

class FetchedRanges {
 public:
  static constexpr std::size_t kMaxRanges = 64;

  // [from, to] was fetched in pieces of `width`; 0: as it was written.
  void add(double from, double to, double width);
  // A part of [from, to] is coarser than `width`. What was never fetched is not: it came live.
  bool coarser_than(double width, double from, double to) const;
  void clear() { ranges_.clear(); }

 private:
  struct Range {
    double from = 0, to = 0, width = 0;
  };
  std::vector<Range> ranges_;  // in order, without overlap
};

}  // namespace atl
