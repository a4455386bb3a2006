// Writes one split's tokens into shard files of bounded size, and goes on where a process that was killed had flushed
// them. One thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "net/data/append_file.h"
#include "net/data/dataset.h"

namespace atl {

struct ShardFormat {
  std::uint32_t token_bytes = 2;  // 2 or 4
  std::uint32_t vocab_size = 0;
  std::uint64_t shard_tokens = 0;  // of each but the last
  bool marked = false;             // token_shard.h
};

// What is on the disk for good.
struct WrittenShards {
  std::vector<ShardEntry> shards;
  std::uint64_t open_tokens = 0;  // of one more, which is not full yet
};

class ShardWriter {
 public:
  // Files "<prefix>-00000.tok", ... in `directory`, after those that are written.
  ShardWriter(std::filesystem::path directory, std::string prefix, const ShardFormat& format, WrittenShards written)
      : directory_(std::move(directory)), prefix_(std::move(prefix)), format_(format), written_(std::move(written)) {}

  // Whole tokens of token_bytes each, little-endian.
  Status append(ByteView tokens);
  // What was appended is flushed, and returned as what to go on from.
  Result<WrittenShards> flush();
  // Closes the last shard. All of them, with their hashes.
  Result<std::vector<ShardEntry>> finish();

 private:
  std::filesystem::path current_path() const;
  Status open_shard();
  Status close_shard();

  const std::filesystem::path directory_;
  const std::string prefix_;
  const ShardFormat format_;
  WrittenShards written_;  // open_tokens: written, perhaps not flushed
  std::optional<AppendFile> file_;
};

}  // namespace atl
