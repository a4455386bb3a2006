// The dataset of a run, as its configuration carries it (RunConfig::dataset_json): sources with weights, of each the
// roots of its hash trees (chunk_tree.h) and where its files can be had beside the hub. A few hundred bytes a source,
// whatever its size. Made by `atoll hub init` of directories that `atoll data prepare` made. Values; any thread.
//
// Runs that were made before sources had weights carry the manifest of one directory instead (dataset.h, versions 1
// and 2): their islands hold it whole, and read it in the order of sequence_order.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/data/dataset.h"
#include "net/wire/mixture.h"

namespace atl {

inline constexpr std::size_t kMaxMirrors = 4;  // of a source

// The root of a split's hash tree.
struct TreeRoot {
  std::uint64_t tokens = 0;       // 0: the split is empty, and has no tree
  std::uint64_t index_bytes = 0;  // of the tree's file
  std::string sha256;             // of these, hex
};

struct RunSource {
  std::string name;          // is_island_name: also the directory's name on the hub and on mirrors of several sources
  std::uint32_t weight = 0;  // of kMixtureParts
  std::string manifest_sha256;       // of its dataset.json, hex
  std::vector<std::string> mirrors;  // directories with its shards: https://, http://, s3:// or a path
  TreeRoot train, validation;
  std::string license = {};  // DatasetManifest::license
};

struct RunDataset {
  std::string tokenizer = "bytes";
  std::uint32_t vocab_size = 257;
  std::uint32_t end_of_text = 256;
  std::optional<TokenizerEntry> tokenizer_file;
  std::string chat_template = {};  // kLlama3ChatTemplateName where a source is of chats, else empty
  std::vector<RunSource> sources;

  MixtureWeights weights() const;
  std::uint64_t tokens(Split split) const;  // of all sources

  std::string to_json() const;
  static Result<RunDataset> from_json(std::string_view text);
};

// What is known of either kind.
struct RunDataFacts {
  std::string tokenizer;
  std::uint32_t vocab_size = 0;
  std::optional<TokenizerEntry> tokenizer_file = {};
  std::uint64_t train_tokens = 0, validation_tokens = 0;
  std::uint64_t held_bytes = 0;    // that every island keeps on its disk; 0: as much as its owner allows
  std::vector<RunSource> sources;  // none: one directory
  std::string license = {};        // of that one
  std::string chat_template = {};  // as of RunDataset
  std::vector<std::string> names() const;
  MixtureWeights weights() const;
};
Result<RunDataFacts> facts_of_run_data(std::string_view dataset_json);
// Whether it is one with sources: RunDataset::from_json reads it.
bool has_sources(std::string_view dataset_json);

Status check_mirror(std::string_view mirror);  // kInvalidArgument

}  // namespace atl
