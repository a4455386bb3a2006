// The hash tree over the chunks of one split of a dataset, in a file beside its shards: what it takes to fetch any
// chunk of 10^12 tokens and to verify it, without having read the rest. The run names the index's SHA-256; the index
// has the shards and the SHA-256 of each part, a part has the SHA-256 of each of its chunks:
//
//   tree   := index part* index_bytes(u64)
//   index  := magic version token_bytes vocab_size chunk_bytes tokens shard_count part_count shard* digest*
//   magic  := "ATOLLTRE";  version, token_bytes, vocab_size, chunk_bytes, shard_count, part_count := u32;  tokens :=
//   u64 shard  := tokens(u64) name_length(u16) name             in their order: the split is one stream of tokens part
//   := leaf*                                         kLeavesOfPart of them, the last part fewer leaf   := digest
//   next_token(u32)                        36 bytes
//
// Chunk i is the tokens [i * chunk_tokens, (i + 1) * chunk_tokens) of the stream, without the shards' headers: it may
// cross from one into the next. The next token, the first behind the chunk, is the label of its last position. All is
// little-endian. Of 4 TB the index has 1.8 MB, the parts 18 KB each, 144 MB together.
//
// Values; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "net/base/bytes.h"
#include "net/base/result.h"
#include "net/base/sha256.h"

namespace atl {

inline constexpr std::uint64_t kLeavesOfPart = 512;
inline constexpr std::uint64_t kChunkLeafBytes = 36;
inline constexpr std::uint64_t kTreeTrailerBytes = 8;
inline constexpr std::uint32_t kDefaultChunkBytes = 1u << 20;
inline constexpr std::uint32_t kMinChunkBytes = 1u << 12, kMaxChunkBytes = 1u << 26;
inline constexpr std::uint64_t kMaxTreeIndexBytes = 64u << 20;
inline constexpr std::uint32_t kNoNextToken = UINT32_MAX;  // of the last chunk

struct TreeShard {
  std::string file;  // a plain name
  std::uint64_t tokens = 0;
};

struct ChunkLeaf {
  Digest sha256{};
  std::uint32_t next_token = kNoNextToken;
};

// Where some of a chunk's bytes lie.
struct ShardPiece {
  std::size_t shard = 0;
  std::uint64_t offset = 0;  // in the file
  std::uint64_t bytes = 0;
};

struct ChunkTreeIndex {
  std::uint32_t token_bytes = 2;  // 2 or 4
  std::uint32_t vocab_size = 0;
  std::uint32_t chunk_bytes = kDefaultChunkBytes;  // a multiple of token_bytes
  std::uint64_t tokens = 0;                        // of all shards
  std::vector<TreeShard> shards;
  std::vector<Digest> parts;

  std::uint32_t chunk_tokens() const { return chunk_bytes / token_bytes; }
  std::uint64_t chunks() const { return tokens == 0 ? 0 : (tokens - 1) / chunk_tokens() + 1; }
  std::uint64_t tokens_of(std::uint64_t chunk) const;
  std::uint64_t leaves_of(std::uint64_t part) const;
  // Where a part begins in the file; `index_bytes`: of the index, before the first.
  static std::uint64_t part_offset(std::uint64_t index_bytes, std::uint64_t part) {
    return index_bytes + part * kLeavesOfPart * kChunkLeafBytes;
  }
  std::uint64_t tree_bytes(std::uint64_t index_bytes) const { return index_bytes + chunks() * kChunkLeafBytes; }
};

Bytes encode(const ChunkTreeIndex& index);
// kCorrupt or kVersionUnsupported. What it returns holds together: counts, sums, names.
Result<ChunkTreeIndex> decode_chunk_tree_index(ByteView bytes);

Bytes encode_tree_part(std::span<const ChunkLeaf> leaves);
// Part `part` of that tree; kCorrupt also when it is not the one whose digest the index has.
Result<std::vector<ChunkLeaf>> decode_tree_part(const ChunkTreeIndex& index, std::uint64_t part, ByteView bytes);

// Finds chunks in shards. The index outlives it.
class ShardTable {
 public:
  explicit ShardTable(const ChunkTreeIndex& index);
  std::vector<ShardPiece> pieces_of(std::uint64_t chunk) const;  // in their order

 private:
  const ChunkTreeIndex& index_;
  std::vector<std::uint64_t> first_token_;  // of each shard
};

// kCorrupt: there is a token that the vocabulary does not have.
Status check_tokens(const ChunkTreeIndex& index, ByteView bytes);
// Whether these are the bytes of that leaf, and such tokens: kCorrupt.
Status check_chunk(const ChunkTreeIndex& index, std::uint64_t chunk, const ChunkLeaf& leaf, ByteView bytes);

}  // namespace atl
