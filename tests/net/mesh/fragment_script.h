// What islands of a run with several fragments say, a round at a time, and a while in which they train by themselves.
#pragma once

#include <vector>

#include "tests/net/mesh/coordinator_script.h"

namespace atl {

inline RunConfig run_of(std::uint32_t fragments, std::uint32_t islands) {
  RunConfig run = run_for(islands);
  run.fragments = fragments;
  return run;
}

inline FragmentId fragment_of(const SimulatedMesh& mesh, std::uint32_t round) {
  return mesh.run.fragment_of(OuterStep{round});
}

inline void say_ready(SimulatedMesh& mesh, int island, std::uint32_t round) {
  mesh.island(island).lane(fragment_of(mesh, round)).inner_done = true;
  mesh.island(island).said_ready.insert(OuterStep{round});
  mesh.say(island, IslandReady{OuterStep{round}, 64, 0.5, 2.0, fragment_of(mesh, round)});
}

inline void all_say_ready(SimulatedMesh& mesh, int islands, std::uint32_t round) {
  for (int i = 1; i <= islands; ++i) say_ready(mesh, i, round);
  deliver(mesh);
}

inline void all_have(SimulatedMesh& mesh, int islands, std::uint32_t round, std::uint32_t attempt = 1) {
  for (int i = 1; i <= islands; ++i) {
    mesh.island(i).lane(fragment_of(mesh, round)).average = {Attempt{attempt}, kDigest};
    mesh.say(i, IslandHave{OuterStep{round}, Attempt{attempt}, kDigest, 0.1, fragment_of(mesh, round)});
  }
  deliver(mesh);
}

// Rounds 0 and 1 are averaged, both by all.
inline void average_two_rounds(SimulatedMesh& mesh, int islands) {
  begin_first_round(mesh, islands);
  all_say_ready(mesh, islands, 0);
  all_say_ready(mesh, islands, 1);
}

inline std::vector<std::uint32_t> rounds_begun(const SimulatedMesh::Island& island) {
  std::vector<std::uint32_t> rounds;
  for (const HubRoundBegin& begun : received<HubRoundBegin>(island)) rounds.push_back(begun.round.value);
  return rounds;
}

// Everybody trains and averages by itself, for a while.
inline void go_on(SimulatedMesh& mesh, int seconds) {
  mesh.trains_by_itself = true;
  for (int i = 0; i < seconds; ++i) {
    mesh.settle();
    mesh.pass(1s);
  }
}

using BegunRounds = std::vector<std::uint32_t>;

}  // namespace atl
