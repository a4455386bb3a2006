#include "net/model/fragments.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace atl {
namespace {

// The next range after what the fragment has, in the canonical order.
void append(Fragment& fragment, const ParameterRange& range) {
  fragment.numel += range.numel;
  if (!fragment.ranges.empty()) {
    ParameterRange& last = fragment.ranges.back();
    if (last.offset + last.numel == range.offset) {
      last.numel += range.numel;
      return;
    }
  }
  fragment.ranges.push_back(range);
}

// What is trained of a unit, as a fragment of its own.
Fragment trained_of(const ParameterLayout& layout, const ParameterUnit& unit) {
  Fragment trained;
  for (std::size_t i = 0; i < unit.parameter_count; ++i) {
    const ParameterInfo& parameter = layout.parameters[unit.first_parameter + i];
    if (parameter.trained) append(trained, {parameter.offset, parameter.numel});
  }
  return trained;
}

}  // namespace

// The largest unit first, each to the fragment that has least (Graham 1969); of equal ones the first. Blocks, which are
// of one size, so come to the fragments in turn: each has early layers and late ones, the paper's strided pattern.
Result<std::vector<Fragment>> fragments_of(const ParameterLayout& layout, std::uint32_t count) {
  std::vector<Fragment> units;
  for (const ParameterUnit& unit : layout.units) {
    Fragment trained = trained_of(layout, unit);
    if (trained.numel > 0) units.push_back(std::move(trained));
  }
  if (count < 1 || count > units.size()) {
    const std::size_t blocks = layout.units.size() - 2;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the model cannot be averaged in {} fragments: it has {} parts that stay whole (the "
                             "embedding, {} block{}, the head){}",
                             count, layout.units.size(), blocks, blocks == 1 ? "" : "s",
                             units.size() == layout.units.size()
                                 ? ""
                                 : fmt::format(", of which {} have something that is trained", units.size()))};
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
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    for (const ParameterRange& range : units[unit].ranges) append(fragments[fragment_of[unit]], range);
  }
  return fragments;
}

std::vector<ParameterRange> ranges_of(std::span<const Fragment> fragments) {
  std::vector<ParameterRange> all;
  for (const Fragment& fragment : fragments) all.insert(all.end(), fragment.ranges.begin(), fragment.ranges.end());
  std::ranges::sort(all, {}, &ParameterRange::offset);
  return all;
}

}  // namespace atl
