#include "net/model/fragments.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace atl {
namespace {

// The next unit after what the fragment has, in the canonical order.
void append(Fragment& fragment, const ParameterUnit& unit) {
  fragment.numel += unit.numel;
  if (!fragment.ranges.empty()) {
    ParameterRange& last = fragment.ranges.back();
    if (last.offset + last.numel == unit.offset) {
      last.numel += unit.numel;
      return;
    }
  }
  fragment.ranges.push_back({unit.offset, unit.numel});
}

}  // namespace

// The largest unit first, each to the fragment that has least (Graham 1969); of equal ones the first. Blocks, which are
// of one size, so come to the fragments in turn: each has early layers and late ones, the paper's strided pattern.
Result<std::vector<Fragment>> fragments_of(const ParameterLayout& layout, std::uint32_t count) {
  const std::vector<ParameterUnit>& units = layout.units;
  if (count < 1 || count > units.size()) {
    const std::size_t blocks = units.size() - 2;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the model cannot be averaged in {} fragments: it has {} parts that stay whole (the "
                             "embedding, {} block{}, the head)",
                             count, units.size(), blocks, blocks == 1 ? "" : "s")};
  }
  std::vector<std::size_t> by_size(units.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::ranges::stable_sort(by_size, std::ranges::greater(), [&](std::size_t unit) { return units[unit].numel; });
  std::vector<std::int64_t> numel(count, 0);
  std::vector<std::size_t> fragment_of(units.size());
  for (const std::size_t unit : by_size) {
    const auto least = std::ranges::min_element(numel);
    *least += units[unit].numel;
    fragment_of[unit] = static_cast<std::size_t>(least - numel.begin());
  }
  std::vector<Fragment> fragments(count);
  for (std::size_t unit = 0; unit < units.size(); ++unit) append(fragments[fragment_of[unit]], units[unit]);
  return fragments;
}

}  // namespace atl
