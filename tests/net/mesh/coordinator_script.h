// The verbs in which the tests of the round coordinator are told.
#pragma once

#include "net/mesh/round_coordinator.h"
#include "tests/net/mesh/simulated_mesh.h"

namespace atl {

using namespace std::chrono_literals;

inline RunConfig small_run() {
  RunConfig run;
  run.run_id = "0123456789abcdef";
  run.model_json = "{}";
  run.dataset_json = "{}";
  run.inner_steps = 4;
  run.sequences_per_step = 2;
  run.sequence_length = 8;
  run.min_islands = 1;
  run.validate_every = 0;
  run.heartbeat = 2s;
  run.dead_after = 6s;
  run.straggler_grace = 60s;
  return run;
}

inline RunConfig run_for(std::uint32_t islands) {
  RunConfig run = small_run();
  run.min_islands = islands;
  return run;
}

template <class Message>
std::vector<Message> received(const SimulatedMesh::Island& island) {
  std::vector<Message> found;
  for (const HubMessage& message : island.received) {
    if (const auto* match = std::get_if<Message>(&message)) found.push_back(*match);
  }
  return found;
}

// Lets the hub's messages in without any island training or averaging.
inline void deliver(SimulatedMesh& mesh) {
  const bool trains = std::exchange(mesh.trains_by_itself, false);
  mesh.settle();
  mesh.trains_by_itself = trains;
}

// Islands 1..n are in round 0, and have finished their inner phases if so asked, but the attempt is not answered yet.
inline void begin_first_round(SimulatedMesh& mesh, int islands) {
  for (int i = 1; i <= islands; ++i) mesh.start(i);
  deliver(mesh);
}
inline IslandReady ready_for(std::uint32_t round) { return IslandReady{OuterStep{round}, 64, 0.5, 2.0}; }
inline void all_ready(SimulatedMesh& mesh, int islands) {
  for (int i = 1; i <= islands; ++i) {
    mesh.island(i).lane().inner_done = true;
    mesh.say(i, ready_for(mesh.hub().committed().value));
  }
  deliver(mesh);
}

inline const std::string kDigest(64, 'd');
inline void have(SimulatedMesh& mesh, int island, std::uint32_t attempt, const std::string& digest = kDigest) {
  mesh.island(island).lane().average = {Attempt{attempt}, digest};
  mesh.say(island, IslandHave{mesh.hub().committed(), Attempt{attempt}, digest, 0.1});
}

// The answers to HubShowChunks of islands that hold none (any more).
inline void show_no_chunks(SimulatedMesh& mesh, int islands, std::uint32_t attempt) {
  for (int i = 1; i <= islands; ++i) mesh.say(i, IslandChunks{mesh.hub().committed(), Attempt{attempt}, {}});
}

}  // namespace atl
