// Makes a dataset out of text: what `atoll data prepare` does. The same inputs give the same bytes and hashes. Blocks
// on the disk; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <vector>

#include "net/base/result.h"
#include "net/data/dataset.h"

namespace atl {

struct PrepareOptions {
  // One block in so many is held out for validation, at a place chosen by `seed` within each such stretch of text.
  std::uint32_t validation_every = 100;
  std::uint64_t block_bytes = 16 * 1024;  // made shorter for short texts, so that there are at least 50 blocks
  std::uint64_t seed = 1;
  std::uint64_t shard_tokens = 16u << 20;
  bool replace = false;  // an older dataset in the output directory
};

// Text bytes done so far, and how many there are in all (0 while that is being counted).
using PrepareProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)>;

// Texts shorter than this cannot be split usefully.
inline constexpr std::uint64_t kMinTextBytes = 16 * 1024;

// The manifest of what is now in `output`. The directory appears whole or not at all, and only a dataset is ever
// replaced.
Result<DatasetManifest> prepare_dataset(const std::vector<std::filesystem::path>& inputs,
                                        const std::filesystem::path& output, const PrepareOptions& options,
                                        const PrepareProgress& progress);

}  // namespace atl
