// Makes the hash trees (chunk_tree.h) of a dataset: one pass over its tokens, on all processors, in which the shards'
// own SHA-256 are compared as well. One that was ended goes on where it was (tree_journal.h). Blocks on the disk; any
// thread.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "net/data/chunk_tree.h"
#include "net/data/dataset.h"

namespace atl {

inline constexpr const char* kTrainTree = "train.tree";
inline constexpr const char* kValidationTree = "validation.tree";
constexpr const char* tree_file(Split split) { return split == Split::kTrain ? kTrainTree : kValidationTree; }

// First with what an earlier call had done. On any of its threads, one at a time. False: it is to end.
using OnTreeProgress = std::function<bool(std::uint64_t done_bytes, std::uint64_t of_bytes)>;

// Writes the split's tree to `path`. kCorrupt when a shard is not what the manifest says; kAborted as `progress` says.
Status make_chunk_tree(const Dataset& dataset, Split split, std::uint32_t chunk_bytes,
                       const std::filesystem::path& path, const OnTreeProgress& progress = {});

// The index of a tree's file, with its size: what comes before the parts. kNotFound when there is no such file.
struct TreeHead {
  ChunkTreeIndex index;
  std::uint64_t index_bytes = 0;
  std::string sha256;  // hex, of the index
};
Result<TreeHead> read_tree_head(const std::filesystem::path& file);

}  // namespace atl
