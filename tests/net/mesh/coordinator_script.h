// The verbs in which the tests of the round coordinator are told.
#pragma once

#include <QtTest>

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

// ---- links

// Says of every edge between islands 1..n how fast it is.
template <class Rate>
void measure_links(SimulatedMesh& mesh, int islands, Rate rate, double rtt_seconds = 0.1) {
  for (int from = 1; from <= islands; ++from) {
    IslandLinkReport report;
    for (int to = 1; to <= islands; ++to) {
      if (from != to) report.links.push_back({mesh.island(to).id, true, rate(from, to), rtt_seconds, false});
    }
    mesh.say(from, report);
  }
}

// As the hub's dialer does of the last address that it was asked to dial.
inline void answer_dial(SimulatedMesh& mesh, int island, bool answered) {
  for (auto dial = mesh.dials().rbegin(); dial != mesh.dials().rend(); ++dial) {
    if (dial->island == mesh.island(island).id) {
      return mesh.hub_hears(IslandDialled{dial->island, dial->address, answered});
    }
  }
  QTest::qFail("the hub has not asked for it to be dialled", __FILE__, __LINE__);
}

// Everybody works until so many rounds more are committed.
inline void commit_rounds(SimulatedMesh& mesh, std::size_t rounds) {
  const std::size_t until = mesh.commits().size() + rounds;
  for (int i = 0; i < 100 && mesh.commits().size() < until; ++i) {
    for (int step = 0; step < 50 && mesh.commits().size() < until; ++step) mesh.settle_once();
    mesh.pass(100ms);
  }
  QVERIFY(mesh.commits().size() >= until);
}

inline std::vector<IslandId> order_of(const HubAttempt& attempt) {
  std::vector<IslandId> ids;
  for (const AttemptMember& member : attempt.order) ids.push_back(member.id);
  return ids;
}

// Of fragments that are small beside the delay of measure_long_links(): an exchange is much faster than a ring.
inline std::vector<std::int64_t> small_fragments(std::uint32_t fragments) {
  return std::vector<std::int64_t>(fragments, 1'000'000);
}
inline void measure_long_links(SimulatedMesh& mesh, int islands) {
  measure_links(
      mesh, islands, [](int, int) { return 50e6; }, 0.3);
}

}  // namespace atl
