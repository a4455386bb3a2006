// The island's checkpoint directory: outer.state and the model's config.json. Written by the island, read by it when it
// starts again and by `atoll export` when no trainer runs.
#pragma once

#include <filesystem>
#include <memory>

#include "net/model/config.h"
#include "trainer/island/outer_state_store.h"

namespace atl {

inline constexpr const char* kStateFile = "outer.state";  // older ones: kept_states.h

struct IslandCheckpoint {
  ModelConfig model;
  std::unique_ptr<OuterStateStore> outer;
};

Status save_checkpoint(const std::filesystem::path& directory, const ModelConfig& model, const OuterStateStore& outer);
// kNotFound when there is none; kCorrupt when it is not whole.
Result<IslandCheckpoint> load_checkpoint(const std::filesystem::path& directory);

}  // namespace atl
