// The leaves of a hash tree that is being made, beside the place of its file: a pass over terabytes that was ended goes
// on where it was, instead of from the beginning. What is in it was flushed, and is believed as far as its own hashes
// go. One thread.
//
//   journal := "ATOLLTRJ" digest block*     the digest is of all that the leaves depend on
//   block   := count(u32) leaf* digest      of count and leaves (chunk_tree.h)
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "net/base/result.h"
#include "net/base/sha256.h"
#include "net/data/append_file.h"
#include "net/data/chunk_tree.h"

namespace atl {

class TreeJournal {
 public:
  // Of the tree that will be at `tree`. A journal that is of another, or none, is begun anew; what is behind the last
  // good block is cut off.
  static Result<TreeJournal> open(const std::filesystem::path& tree, const Digest& of);

  // Those that were there, from the tree's first.
  std::vector<ChunkLeaf> take_leaves() { return std::move(leaves_); }
  Status add(std::span<const ChunkLeaf> leaves);  // the ones behind; flushed
  void remove();                                  // the tree is there

 private:
  TreeJournal(AppendFile file, std::vector<ChunkLeaf> leaves) : file_(std::move(file)), leaves_(std::move(leaves)) {}

  AppendFile file_;
  std::vector<ChunkLeaf> leaves_;
};

// The leaves of a journal's good blocks, and how many bytes these are with its head; nothing of one that is not `of`.
struct TreeJournalText {
  std::vector<ChunkLeaf> leaves;
  std::uint64_t good_bytes = 0;
};
TreeJournalText read_tree_journal(ByteView bytes, const Digest& of);

}  // namespace atl
