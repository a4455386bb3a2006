#include "net/mesh/edge_failures.h"

#include <algorithm>

namespace atl {
namespace {

bool is_end(const IslandPair& edge, const IslandId& island) { return edge.first == island || edge.second == island; }

}  // namespace

bool EdgeFailures::failed(const IslandId& a, const IslandId& b, Clock::time_point now) {
  Edge& edge = edges_[std::minmax(a, b)];
  std::deque<Clock::time_point>& failures = edge.failures;
  failures.push_back(now);
  std::erase_if(failures, [&](const Clock::time_point& when) { return now - when > kRemembered; });
  if (std::ssize(failures) > kTolerated) failures.pop_front();
  const bool rested = edge.rests > 0 && now - edge.rests_until <= kRemembered;
  return rested || std::ssize(failures) >= kTolerated;
}

Clock::duration EdgeFailures::rest(const IslandId& a, const IslandId& b, Clock::time_point now) {
  Edge& edge = edges_[std::minmax(a, b)];
  const Clock::duration last = kFirstRest * (1 << std::clamp(edge.rests - 1, 0, kMostDoublings));
  if (edge.rests > 0 && now - edge.rests_until > std::max<Clock::duration>(kRemembered, 4 * last)) edge.rests = 0;
  ++edge.rests;
  const Clock::duration next = kFirstRest * (1 << std::min(edge.rests - 1, kMostDoublings));
  edge.rests_until = now + next;
  edge.failures.clear();
  return next;
}

bool EdgeFailures::rests_again(const IslandId& a, const IslandId& b) const {
  const auto found = edges_.find(std::minmax(a, b));
  return found != edges_.end() && found->second.rests > 1;
}

std::size_t EdgeFailures::failed_peers(const IslandId& island, Clock::time_point now) const {
  const auto counts = [&](const auto& entry) {
    const Edge& edge = entry.second;
    const bool failed_of_late = !edge.failures.empty() && now - edge.failures.back() <= kRemembered;
    return is_end(entry.first, island) && (failed_of_late || now < edge.rests_until);
  };
  return static_cast<std::size_t>(std::ranges::count_if(edges_, counts));
}

bool EdgeFailures::is_at_fault(const IslandId& island, std::size_t islands, Clock::time_point now) const {
  const std::size_t liars = most_liars(islands);
  return liars > 0 && failed_peers(island, now) > liars;
}

void EdgeFailures::sat_out(const IslandId& island, Clock::time_point now) {
  for (auto& [ends, edge] : edges_) {
    if (is_end(ends, island) && now < edge.rests_until) edge.sat_out = island;
  }
}

bool EdgeFailures::is_its_turn(const IslandId& island, Clock::time_point now) const {
  return std::ranges::any_of(edges_, [&](const auto& entry) {
    const auto& [ends, edge] = entry;
    return is_end(ends, island) && now < edge.rests_until && edge.sat_out && *edge.sat_out != island;
  });
}

void EdgeFailures::forget(const IslandId& island) {
  std::erase_if(edges_, [&](const auto& entry) { return is_end(entry.first, island); });
}

}  // namespace atl
