#include "net/mesh/edge_failures.h"

#include <algorithm>

namespace atl {
// Each of so many liars may fail so often with as many as it takes to be at fault.
Clock::duration EdgeFailures::remembered(FailureCost cost) {
  const auto failures = most_liars(cost.islands) * most_failed_peers(cost.islands) * kTolerated;
  return std::max<Clock::duration>(kRemembered, static_cast<Clock::rep>(failures) * kShare * cost.time);
}

bool EdgeFailures::failed(const IslandId& a, const IslandId& b, Clock::time_point now, FailureCost cost,
                          const std::optional<IslandId>& unproven) {
  Edge& edge = edges_[std::minmax(a, b)];
  std::erase_if(edge.failures, [&](const Clock::time_point& when) { return now - when > edge.remembered; });
  const bool rested = edge.rests > 0 && now - edge.rests_until <= edge.remembered;
  const bool is_first = edge.failures.empty() && !rested;
  if (is_first) edge.unproven = unproven;
  edge.remembered = std::max(is_first ? Clock::duration() : edge.remembered, remembered(cost));
  edge.failures.push_back(now);
  if (std::ssize(edge.failures) > kTolerated) edge.failures.pop_front();
  return rested || std::ssize(edge.failures) >= kTolerated;
}

Clock::duration EdgeFailures::rest(const IslandId& a, const IslandId& b, Clock::time_point now) {
  Edge& edge = edges_[std::minmax(a, b)];
  if (edge.rests > 0 && now - edge.rests_until > std::max(edge.remembered, 4 * rest_of(edge))) edge.rests = 0;
  ++edge.rests;
  edge.rests_until = now + rest_of(edge);
  edge.failures.clear();
  return rest_of(edge);
}

// The last one.
Clock::duration EdgeFailures::rest_of(const Edge& edge) {
  return edge.remembered / kFirstRest * (1 << std::clamp(edge.rests - 1, 0, kMostDoublings));
}

bool EdgeFailures::rests_again(const IslandId& a, const IslandId& b) const {
  const auto found = edges_.find(std::minmax(a, b));
  return found != edges_.end() && found->second.rests > 1;
}

std::size_t EdgeFailures::failed_peers(const IslandId& island, const std::set<IslandId>& of,
                                       Clock::time_point now) const {
  const auto counts = [&](const auto& entry) {
    const Edge& edge = entry.second;
    const bool failed_of_late = !edge.failures.empty() && now - edge.failures.back() <= edge.remembered;
    const bool rested_of_late = edge.rests > 0 && now - edge.rests_until <= edge.remembered;
    const auto& [a, b] = entry.first;
    const bool is_of_both = of.contains(a) && of.contains(b);
    return is_of_both && is_end(entry.first, island) && (failed_of_late || rested_of_late);
  };
  return static_cast<std::size_t>(std::ranges::count_if(edges_, counts));
}

// As many as may lie; where there are more of them, an honest one may have had an accident, too.
std::size_t EdgeFailures::most_failed_peers(std::size_t islands) { return most_liars(islands) + (islands < 7 ? 0 : 1); }

bool EdgeFailures::is_at_fault(const IslandId& island, const std::set<IslandId>& islands, Clock::time_point now) const {
  return most_liars(islands.size()) > 0 && failed_peers(island, islands, now) > most_failed_peers(islands.size());
}

void EdgeFailures::sat_out(const IslandId& island, Clock::time_point now) {
  for (auto& [ends, edge] : edges_) {
    if (!is_end(ends, island) || now >= edge.rests_until) continue;
    edge.rounds_out = edge.sat_out == island ? edge.rounds_out + 1 : 1;
    edge.sat_out = island;
  }
}

bool EdgeFailures::is_its_turn(const IslandId& island, Clock::time_point now) const {
  return std::ranges::any_of(edges_, [&](const auto& entry) {
    const auto& [ends, edge] = entry;
    if (!is_end(ends, island) || now >= edge.rests_until) return false;
    if (edge.unproven) return edge.unproven == island;
    return edge.sat_out && (*edge.sat_out == island) == (edge.rounds_out < kTurn);
  });
}

void EdgeFailures::doubt(const IslandId& island, Clock::time_point now) {
  for (auto& [ends, edge] : edges_) {
    if (is_end(ends, island) && now < edge.rests_until) edge.unproven = island;
  }
}

void EdgeFailures::forget(const IslandId& island) {
  std::erase_if(edges_, [&](const auto& entry) { return is_end(entry.first, island); });
}

}  // namespace atl
