// The checkpoints of an island on its disk, and the rounds logged since, looked at without the model: header, size,
// SHA-256. Any thread; verifying reads all of a file.
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
  std::filesystem::path path;  // of the outer state: a directory
  std::uint32_t outer_step = 0;
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;
  double saved_at = 0;        // seconds since 1970
  std::string state_hash;     // as the file says, hex
  std::optional<bool> whole;  // empty: not verified
};

// A round since one of them, which leads on to the outer state that it made (net/disk/round_log.h).
struct LoggedRoundFacts {
  std::filesystem::path path;  // of its average
  std::uint32_t round = 0;
  std::uint64_t bytes = 0;    // of its average
  std::string state_hash;     // of outer step round + 1, hex
  std::optional<bool> whole;  // empty: not verified
};

// Newest first; empty when there is none. What is called a checkpoint and is none is listed with whole = false.
Result<std::vector<CheckpointFacts>> list_checkpoints(const IslandHome& home);
// Reads all of it and compares its hashes; and whether the logged rounds are there that it needs.
Result<CheckpointFacts> verify_checkpoint(const std::filesystem::path& file);

// Newest first. Only those that an island can take again by what their files say of themselves.
std::vector<LoggedRoundFacts> list_logged_rounds(const IslandHome& home);
// Reads all of its average and compares the digest with the hub's record.
Result<LoggedRoundFacts> verify_logged_round(LoggedRoundFacts round);

// Both, for all of the lists. What a trainer that runs has removed meanwhile is left out of them.
Status verify_all(std::vector<CheckpointFacts>& checkpoints, std::vector<LoggedRoundFacts>& rounds);

// The control protocol's checkpoints.list: {} -> {checkpoints: [...], rounds: [...]}
nlohmann::json checkpoints_json(const std::vector<CheckpointFacts>& checkpoints,
                                const std::vector<LoggedRoundFacts>& rounds);

}  // namespace atl
