// Model and newest outer state in the island's checkpoint directory (net/disk/checkpoint_directory.h): a kept one, and
// the rounds that were logged since (net/disk/replay.h). Read by the island when it starts again, and by `atoll export`
// when no trainer runs.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "net/disk/kept_states.h"
#include "net/model/config.h"
#include "trainer/island/outer_state_store.h"

namespace atl {

struct IslandCheckpoint {
  ModelConfig model;
  std::unique_ptr<OuterStateStore> outer;
};

// Where a file cannot be read, the newest state that the others lead to. kNotFound when there is none; kCorrupt when
// none is whole. `unreadable` is given the kept states that were tried in vain.
Result<IslandCheckpoint> load_checkpoint(const std::filesystem::path& directory,
                                         std::vector<KeptState>* unreadable = nullptr);
// Why the directory leads to no state.
Error no_whole_checkpoint(const std::filesystem::path& directory);

}  // namespace atl
