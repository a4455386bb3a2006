// A dataset: token shards (memory-mapped) of a training and a validation split, described by a manifest with the
// SHA-256 of every file. Made by `atoll data prepare`; the manifest is part of the run, so every island trains on the
// same tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/file.h"
#include "net/base/result.h"
#include "net/data/data_statistics.h"

namespace atl {

enum class Split { kTrain, kValidation };

struct ShardEntry {
  std::string file;  // a plain name, no directory
  std::uint64_t tokens = 0;
  std::uint64_t bytes = 0;  // of the whole file
  std::string sha256;       // of the whole file, hex
};

// The tokenizer's file, which lies in the dataset beside the shards.
struct TokenizerEntry {
  std::string file;  // a plain name
  std::uint64_t bytes = 0;
  std::string sha256;
};

nlohmann::json tokenizer_entry_to_json(const TokenizerEntry& entry);
void read_tokenizer_entry(JsonReader& reader, TokenizerEntry& entry);
void read_license(JsonReader& reader, std::string& license);  // field "license"

// Of a text's licence: an SPDX expression ("CC-BY-4.0", "MIT OR Apache-2.0", "LicenseRef-..."), by its characters: 1 to
// 128 of letters, digits and " .+-:()".
bool is_license(std::string_view text);

struct DatasetManifest {
  std::string tokenizer = "bytes";  // byte-level: token = byte, kEndOfText between documents
  std::uint32_t vocab_size = 257;
  std::uint32_t end_of_text = 256;               // behind each document
  std::optional<std::uint32_t> begin_of_text;    // before each document; none: nothing is
  std::optional<TokenizerEntry> tokenizer_file;  // of all but "bytes"
  // The shards say which tokens count as labels (token_shard.h): of chats those that an assistant says.
  bool marked_labels = false;
  std::optional<DataStatistics> statistics;  // datasets of version 1 have none
  std::string license;                       // is_license, of the text; empty: nobody said
  std::vector<ShardEntry> train;
  std::vector<ShardEntry> validation;

  // Canonical: sorted keys, no spaces. Of version 1 where it says nothing that version 1 has no word for.
  std::string to_json() const;
  static Result<DatasetManifest> from_json(std::string_view text);
  // Of a directory, whose shards may be elsewhere. kNotFound says how one is made.
  static Result<DatasetManifest> load(const std::filesystem::path& directory);
  std::uint64_t tokens(Split split) const;
  const std::vector<ShardEntry>& shards(Split split) const { return split == Split::kTrain ? train : validation; }
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
  // A shard as it lies on the disk, with its header, by its number in the manifest.
  ByteView shard_file(Split split, std::size_t shard) const { return shards(split)[shard].file.bytes(); }
  std::uint32_t token_bytes(Split split) const;  // of its widest shard
  // Sequence i of a split: tokens [i * length, i * length + length + 1), i.e. inputs and labels overlap by all but one.
  std::uint64_t sequences(Split split, std::uint32_t length) const;
  // Writes length + 1 token ids, each with kUncountedBit where it counts for nothing as a label. `index` <
  // sequences(split, length). May cross shards.
  void read_sequence(Split split, std::uint64_t index, std::uint32_t length, std::span<std::int32_t> tokens) const;

 private:
  struct Shard {
    std::uint64_t first_token = 0;
    std::uint64_t tokens = 0;
    std::uint32_t token_bytes = 2;  // uint16 or uint32
    MappedFile file;
  };
  const std::vector<Shard>& shards(Split split) const { return split == Split::kTrain ? train_ : validation_; }
  Status verify(const ShardEntry& entry, const Shard& shard) const;
  Status verify_tokenizer() const;

  DatasetManifest manifest_;
  std::filesystem::path directory_;
  std::vector<Shard> train_, validation_;
};

}  // namespace atl
