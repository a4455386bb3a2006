// What `atoll checkpoints` changes in an island's checkpoint directory while no trainer does: an older outer step made
// the newest, and what retention does not keep removed. Who calls has seen that no trainer runs. Block, as long as a
// model takes to be read; one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "net/base/id.h"
#include "net/base/result.h"
#include "net/control/home.h"
#include "net/disk/kept_states.h"

namespace atl {

struct RestoredCheckpoint {
  OuterStep outer_step;
  std::string state_hash;                    // of what was read and made again for it, hex
  std::filesystem::path aside;               // where what is newer went; empty: nothing is
  std::vector<std::filesystem::path> moved;  // as it was called
};

// Reads and makes the state first. What is newer is moved into a directory of its own, aside.N, and nothing is removed;
// nor are the hub's records, which the island shows it. kNotFound when no state on this disk leads there, naming those
// that do; kCorrupt when what leads there is not whole.
Result<RestoredCheckpoint> restore_checkpoint(const IslandHome& home, OuterStep step);
nlohmann::json to_json(const RestoredCheckpoint& restored);

struct RemovedCheckpoints {
  struct State {
    std::filesystem::path path;
    OuterStep outer_step;
    std::uint64_t bytes = 0;
  };
  std::vector<State> states;
  std::vector<OuterStep> rounds;
  std::uint64_t bytes = 0;  // of all of them
};

RemovedCheckpoints prune_checkpoints(const IslandHome& home, const Retention& retention);
nlohmann::json to_json(const RemovedCheckpoints& removed);

}  // namespace atl
