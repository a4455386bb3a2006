// Which of the island's GPUs its owner has paused, kept across restarts of agent and machine: <state>/paused_gpus.json,
// replaced atomically. Values and pure functions but for load and save; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/result.h"
#include "net/control/node_state.h"

namespace atl {

struct PausedGpus {
  static constexpr int kPausedGpusVersion = 1;

  std::vector<GpuPause> pauses = {};  // by ascending numbers, each once

  // Until then (seconds since 1970), or until it is resumed.
  void pause(unsigned gpu, std::optional<std::int64_t> until_seconds);
  bool resume(unsigned gpu);  // false: it was not paused
  // Without those that are over.
  PausedGpus at(std::int64_t now) const;
  std::vector<unsigned> numbers() const;

  std::string to_json() const;
  static Result<PausedGpus> from_json(std::string_view text);
  bool operator==(const PausedGpus&) const = default;
};

std::filesystem::path paused_gpus_file(const std::filesystem::path& state);
// None where there is no file; kCorrupt when it cannot be read.
Result<PausedGpus> load_paused_gpus(const std::filesystem::path& path);
Status save_paused_gpus(const std::filesystem::path& path, const PausedGpus& paused);

}  // namespace atl
