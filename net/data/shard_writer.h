// Writes one split's tokens into shard files of bounded size. One thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "net/base/unique_fd.h"
#include "net/data/dataset.h"

namespace atl {

class ShardWriter {
 public:
  // Files "<prefix>-00000.tok", ... in `directory`.
  ShardWriter(std::filesystem::path directory, std::string prefix, std::uint64_t shard_tokens)
      : directory_(std::move(directory)), prefix_(std::move(prefix)), shard_tokens_(shard_tokens) {}

  Status put_text(std::string_view text);
  Status put_token(std::uint16_t token);
  bool empty() const { return shards_.empty() && tokens_ == 0; }
  // Closes the last shard. All of them, with their hashes, on the disk.
  Result<std::vector<ShardEntry>> finish();

 private:
  std::filesystem::path current_path() const;
  Status open_shard();
  Status flush();
  Status close_shard();

  const std::filesystem::path directory_;
  const std::string prefix_;
  const std::uint64_t shard_tokens_;
  UniqueFd file_;
  std::vector<std::uint16_t> buffer_;
  std::uint64_t tokens_ = 0;  // of the open shard
  std::vector<ShardEntry> shards_;
};

}  // namespace atl
