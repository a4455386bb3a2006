#include "tests/fakes/hub_states.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace atl::test {
namespace {

constexpr std::array kNames{"basement", "garage", "attic", "node7"};

HubState::Island island_of(unsigned number) {
  HubState::Island island;
  island.id = "isl-" + std::to_string(number);
  island.name = number < kNames.size() ? kNames[number] : "island" + std::to_string(number);
  island.state = HubIslandState::kTraining;
  island.phase = number == 1 ? IslandPhase::kSyncing : IslandPhase::kTraining;
  // One is done before the others, and waits for them.
  island.inner_step = number == 1 ? 500 : 371 - 20 * (number % 10);
  island.loss_nats = 2.2 + 0.01 * number;
  island.tokens_per_second = number == 1 ? 43'210 : 31'815 - 1'715.0 * (number % 10);
  island.tokens = 120'000;
  island.bytes_sent = 1'900'000'000;
  island.inner_seconds = 123;
  island.sync_seconds = 10;
  island.last_seen_seconds = 1;
  return island;
}

HubState::Round round_of(unsigned number) {
  HubState::Round round;
  round.round = number;
  round.members = 3;
  round.tokens = 120'000;
  round.seconds = 9.5;
  round.mean_loss_nats = loss_of_round(number);
  round.outer_hashes_equal = true;
  return round;
}

}  // namespace

HubState young_run() {
  HubState state;
  state.run_id = "f3a9c2d871b04e65";
  state.name = "gcide-demo";
  state.addresses = {"hub.example.org:47000"};
  state.phase = HubPhase::kWaiting;
  state.inner_steps = 500;
  state.min_islands = 2;
  return state;
}

double loss_of_round(unsigned round) { return 2.2 + 3 * std::exp(-double(round) / 8); }

HubState training_run(unsigned islands, unsigned rounds) {
  HubState state = young_run();
  state.phase = HubPhase::kTraining;
  state.round_open = true;
  state.outer_step = rounds;
  const unsigned kept = std::min<unsigned>(rounds, HubState::kMaxRounds);
  for (unsigned round = rounds - kept; round < rounds; ++round) state.rounds.push_back(round_of(round));
  for (unsigned number = 0; number < islands; ++number) {
    state.islands.push_back(island_of(number));
    state.islands.back().rounds_accepted = rounds;
  }
  return state;
}

}  // namespace atl::test
