// The checkpoints of an island on its disk, looked at without the model: header, size, SHA-256. Any thread; verifying
// reads all of a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "net/base/result.h"
#include "net/control/home.h"

namespace atl {

struct CheckpointFacts {
  std::filesystem::path path;  // of the outer state
  std::uint32_t outer_step = 0;
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;
  double saved_at = 0;        // seconds since 1970
  std::string state_hash;     // as the file says, hex
  std::optional<bool> whole;  // empty: not verified
};

// Newest first; empty when there is none. A file whose header is no checkpoint's is listed with whole = false.
Result<std::vector<CheckpointFacts>> list_checkpoints(const IslandHome& home);
// Reads all of it and compares the tree hash.
Result<CheckpointFacts> verify_checkpoint(const std::filesystem::path& file);

// The control protocol's checkpoints.list: {} -> {checkpoints: [...]}
nlohmann::json checkpoints_json(const std::vector<CheckpointFacts>& checkpoints);

}  // namespace atl
