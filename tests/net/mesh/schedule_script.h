// Attempts whose schedule matters: how one over long links begins, what members say of it.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/net/mesh/fragment_script.h"

namespace atl {

// Islands 1..n have trained round 0, of a model that is small beside the delay of their links, and an attempt begins.
inline void begin_directly(SimulatedMesh& mesh, int islands) {
  begin_first_round(mesh, islands);
  measure_long_links(mesh, islands);
  all_ready(mesh, islands);
}

inline std::vector<HubAttempt> attempts(SimulatedMesh& mesh, int island = 1) {
  return received<HubAttempt>(mesh.island(island));
}

inline std::vector<Schedule> schedules(SimulatedMesh& mesh) {
  std::vector<Schedule> found;
  for (const HubAttempt& attempt : attempts(mesh)) found.push_back(attempt.schedule);
  return found;
}

inline void answer(SimulatedMesh& mesh, int island, std::uint32_t attempt, std::vector<bool> whole = {}) {
  mesh.say(island, IslandAttemptFailed{OuterStep{mesh.hub().committed()}, Attempt{attempt}, std::nullopt, "aborted",
                                       std::move(whole)});
}

inline bool has(const std::vector<IslandId>& order, const IslandId& id) {
  return std::ranges::find(order, id) != order.end();
}

inline constexpr Schedule kRing = Schedule::kRing, kDirect = Schedule::kDirect;

}  // namespace atl
