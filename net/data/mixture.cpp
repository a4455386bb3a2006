#include "net/data/mixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace atl {
namespace {

constexpr int kShareBits = 32;

__extension__ using Wide = unsigned __int128;

// Of the first n positions at a node: those that go to the left.
std::uint64_t left_of(std::uint64_t n, std::uint64_t share) {
  return static_cast<std::uint64_t>((static_cast<Wide>(n) * share) >> kShareBits);
}

}  // namespace

// The tree over sources [first, end); what stands for it in Node::next.
std::int32_t Mixture::add_nodes(const MixtureWeights& weights, std::size_t first, std::size_t end,
                                std::vector<Node>& nodes) {
  if (end - first == 1) return -1 - static_cast<std::int32_t>(first);
  const std::size_t middle = first + (end - first) / 2, node = nodes.size();
  const auto sum = [&](std::size_t from, std::size_t to) {
    return std::accumulate(weights.begin() + static_cast<std::ptrdiff_t>(from),
                           weights.begin() + static_cast<std::ptrdiff_t>(to), std::uint64_t{0});
  };
  const std::uint64_t left = sum(first, middle), all = sum(first, end);
  nodes.push_back({all == 0 ? 0 : (left << kShareBits) / all, {}});
  const std::int32_t to_left = add_nodes(weights, first, middle, nodes);
  const std::int32_t to_right = add_nodes(weights, middle, end, nodes);
  nodes[node].next = {to_left, to_right};
  return static_cast<std::int32_t>(node);
}

Result<Mixture> Mixture::create(const std::vector<MixtureEra>& eras) {
  if (eras.empty() || eras.front().from_position != 0 ||
      !std::ranges::is_sorted(eras, {}, &MixtureEra::from_position)) {
    return Error{ErrorCode::kProtocol, "the eras of the run's mixture do not follow one another from position 0 on"};
  }
  const std::size_t sources = eras.front().weights.size();
  Mixture mixture;
  for (const MixtureEra& era : eras) {
    ATOLL_RETURN_IF_ERROR(check_weights(era.weights));
    if (era.weights.size() != sources) {
      return Error{ErrorCode::kProtocol,
                   fmt::format("the run has {} sources, and a mixture of {} was decided", sources, era.weights.size())};
    }
    Era next{era.from_position, {}, std::vector<std::uint64_t>(sources, 0)};
    if (!mixture.eras_.empty()) next.before = mixture.counts_before(era.from_position);
    add_nodes(era.weights, 0, sources, next.nodes);
    mixture.eras_.push_back(std::move(next));
  }
  return mixture;
}

// The last of those that begin at or before it: an era that ended where it began has no position.
const Mixture::Era& Mixture::era_of(std::uint64_t position) const {
  return *std::prev(std::ranges::upper_bound(eras_, position, {}, &Era::from));
}

Mixture::Place Mixture::at(std::uint64_t position) const {
  const Era& era = era_of(position);
  std::uint64_t n = position - era.from;
  std::int32_t node = era.nodes.empty() ? -1 : 0;
  while (node >= 0) {
    const Node& here = era.nodes[static_cast<std::size_t>(node)];
    const std::uint64_t left = left_of(n, here.left_share);
    const bool goes_left = left_of(n + 1, here.left_share) > left;
    n = goes_left ? left : n - left;
    node = here.next[goes_left ? 0 : 1];
  }
  const auto source = static_cast<std::uint32_t>(-1 - node);
  return {source, era.before[source] + n};
}

void Mixture::count(const Era& era, std::int32_t at, std::uint64_t positions, std::vector<std::uint64_t>& counts) {
  if (at < 0) {
    counts[static_cast<std::size_t>(-1 - at)] += positions;
    return;
  }
  const Node& node = era.nodes[static_cast<std::size_t>(at)];
  const std::uint64_t left = left_of(positions, node.left_share);
  count(era, node.next[0], left, counts);
  count(era, node.next[1], positions - left, counts);
}

std::vector<std::uint64_t> Mixture::counts_before(std::uint64_t position) const {
  // Of the eras that have begun before it, the last.
  const auto behind = std::ranges::lower_bound(eras_, position, {}, &Era::from);
  const Era& era = behind == eras_.begin() ? eras_.front() : *std::prev(behind);
  std::vector<std::uint64_t> counts = era.before;
  count(era, era.nodes.empty() ? -1 : 0, position - era.from, counts);
  return counts;
}

}  // namespace atl
