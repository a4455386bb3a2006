#include "app/core/fetched_ranges.h"

#include <algorithm>

namespace atl {

void FetchedRanges::add(double from, double to, double width) {
  std::vector<Range> cut;
  for (const Range& range : ranges_) {
    if (range.from < from) cut.push_back({range.from, std::min(range.to, from), range.width});
    if (range.to > to) cut.push_back({std::max(range.from, to), range.to, range.width});
  }
  cut.push_back({from, to, width});
  std::ranges::sort(cut, {}, &Range::from);
  ranges_.clear();
  for (const Range& range : cut) {
    // Equals that touch are one.
    if (!ranges_.empty() && ranges_.back().to >= range.from && ranges_.back().width == range.width) {
      ranges_.back().to = std::max(ranges_.back().to, range.to);
    } else {
      ranges_.push_back(range);
    }
  }
  // The shortest is forgotten: what lies there is fetched once more when it is looked at.
  while (ranges_.size() > kMaxRanges) {
    const auto shortest =
        std::ranges::min_element(ranges_, {}, [](const Range& range) { return range.to - range.from; });
    const auto beside = shortest == ranges_.begin() ? std::next(shortest) : std::prev(shortest);
    beside->from = std::min(beside->from, shortest->from);
    beside->to = std::max(beside->to, shortest->to);
    beside->width = std::max(beside->width, shortest->width);
    ranges_.erase(shortest);
  }
}

bool FetchedRanges::coarser_than(double width, double from, double to) const {
  return std::ranges::any_of(
      ranges_, [&](const Range& range) { return range.width > width && range.from < to && range.to > from; });
}

}  // namespace atl
