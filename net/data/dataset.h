// A dataset: token shards (memory-mapped) of a training and a validation split, described by a manifest with the
// SHA-256 of every file. Made by `atoll data prepare`; the manifest is part of the run, so every island trains on the
// same tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/file.h"
#include "net/base/result.h"

namespace atl {

enum class Split { kTrain, kValidation };

struct ShardEntry {
  std::string file;  // a plain name, no directory
  std::uint64_t tokens = 0;
  std::uint64_t bytes = 0;  // of the whole file
  std::string sha256;       // of the whole file, hex
};

struct DatasetManifest {
  std::string tokenizer = "bytes";  // byte-level: token = byte, kEndOfText between documents
  std::uint32_t vocab_size = 257;
  std::vector<ShardEntry> train;
  std::vector<ShardEntry> validation;

  std::string to_json() const;  // canonical: sorted keys, no spaces
  static Result<DatasetManifest> from_json(std::string_view text);
  std::uint64_t tokens(Split split) const;
};

class Dataset {
 public:
  // `directory` holds dataset.json (or `manifest` is given, as islands get it from the hub) and the shards. Sizes and
  // headers are checked on opening; verify() reads everything (or one split) and compares hashes.
  static Result<Dataset> open(const std::filesystem::path& directory);
  static Result<Dataset> open(const std::filesystem::path& directory, DatasetManifest manifest);
  Status verify() const;
  Status verify(Split split) const;

  const DatasetManifest& manifest() const { return manifest_; }
  // Sequence i of a split: tokens [i * length, i * length + length + 1), i.e. inputs and labels overlap by all but one.
  std::uint64_t sequences(Split split, std::uint32_t length) const;
  // Writes length + 1 token ids. `index` < sequences(split, length). May cross shards.
  void read_sequence(Split split, std::uint64_t index, std::uint32_t length, std::span<std::int32_t> tokens) const;

 private:
  struct Shard {
    std::uint64_t first_token = 0;
    std::uint64_t tokens = 0;
    std::uint32_t token_bytes = 2;  // uint16 or uint32
    MappedFile file;
  };
  Status verify(const ShardEntry& entry, const Shard& shard) const;

  DatasetManifest manifest_;
  std::filesystem::path directory_;
  std::vector<Shard> train_, validation_;
};

}  // namespace atl
