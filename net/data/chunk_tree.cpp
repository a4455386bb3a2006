#include "net/data/chunk_tree.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/base/plain_name.h"
#include "net/data/token_shard.h"

namespace atl {
namespace {

constexpr std::string_view kTreeMagic = "ATOLLTRE";
constexpr std::uint32_t kTreeVersion = 1;
constexpr std::uint64_t kMaxTokens = std::uint64_t{1} << 52;
constexpr std::uint64_t kLeastShardBytes = 8 + 2 + 1;

Error corrupt(std::string_view why) { return {ErrorCode::kCorrupt, fmt::format("the dataset's hash tree {}", why)}; }

// Before anything is made room for: what the counts promise must be there.
Status check_counts(const ChunkTreeIndex& index, std::uint32_t shards, std::uint32_t parts, std::size_t bytes) {
  if (index.token_bytes != 2 && index.token_bytes != 4) return corrupt("has tokens of a width that is none");
  if (index.vocab_size == 0 || (index.token_bytes == 2 && index.vocab_size > 65536)) {
    return corrupt("has a vocabulary that its tokens do not fit");
  }
  if (index.chunk_bytes < kMinChunkBytes || index.chunk_bytes > kMaxChunkBytes ||
      index.chunk_bytes % index.token_bytes != 0) {
    return corrupt(fmt::format("has chunks of {} bytes", index.chunk_bytes));
  }
  if (index.tokens > kMaxTokens) return corrupt("has more tokens than there are");
  if (shards * kLeastShardBytes + parts * std::uint64_t{sizeof(Digest)} > bytes) return corrupt("is cut short");
  if (parts != (index.chunks() + kLeavesOfPart - 1) / kLeavesOfPart) {
    return corrupt(fmt::format("has {} parts for {} chunks", parts, index.chunks()));
  }
  return ok_status();
}

Digest get_digest(ByteReader& reader) {
  Digest digest{};
  const ByteView bytes = reader.get_bytes(digest.size());
  if (bytes.size() == digest.size()) std::ranges::copy(bytes, digest.begin());
  return digest;
}

Status read_shards(ByteReader& reader, std::uint32_t count, ChunkTreeIndex& index) {
  std::uint64_t sum = 0;
  index.shards.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    TreeShard shard;
    shard.tokens = reader.get<std::uint64_t>();
    shard.file = reader.get_string(kMaxPlainName);
    if (!reader.ok() || !is_plain_name(shard.file)) return corrupt("names a shard that is no plain file");
    if (shard.tokens == 0 || shard.tokens > index.tokens - sum) return corrupt("has shards that are not its tokens");
    sum += shard.tokens;
    index.shards.push_back(std::move(shard));
  }
  return sum == index.tokens ? ok_status() : Status(corrupt("has shards that are not its tokens"));
}

template <class Token>
std::uint32_t largest_token(ByteView bytes) {
  std::uint32_t largest = 0;
  for (std::size_t at = 0; at + sizeof(Token) <= bytes.size(); at += sizeof(Token)) {
    Token token = 0;
    std::memcpy(&token, bytes.data() + at, sizeof token);
    largest = std::max(largest, token_id(token));  // its mark is not looked at
  }
  return largest;
}

}  // namespace

std::uint64_t ChunkTreeIndex::tokens_of(std::uint64_t chunk) const {
  return std::min<std::uint64_t>(chunk_tokens(), tokens - chunk * chunk_tokens());
}

std::uint64_t ChunkTreeIndex::leaves_of(std::uint64_t part) const {
  return std::min(kLeavesOfPart, chunks() - part * kLeavesOfPart);
}

Bytes encode(const ChunkTreeIndex& index) {
  ByteWriter writer;
  writer.put_bytes(as_bytes(kTreeMagic));
  writer.put(kTreeVersion);
  writer.put(index.token_bytes);
  writer.put(index.vocab_size);
  writer.put(index.chunk_bytes);
  writer.put(index.tokens);
  writer.put(static_cast<std::uint32_t>(index.shards.size()));
  writer.put(static_cast<std::uint32_t>(index.parts.size()));
  for (const TreeShard& shard : index.shards) {
    writer.put(shard.tokens);
    writer.put_string(shard.file);
  }
  for (const Digest& digest : index.parts) writer.put_bytes(digest);
  return writer.take();
}

Result<ChunkTreeIndex> decode_chunk_tree_index(ByteView bytes) {
  if (bytes.size() > kMaxTreeIndexBytes) return corrupt("is larger than this program takes");
  ByteReader reader(bytes);
  const std::string magic = to_string(reader.get_bytes(kTreeMagic.size()));
  const auto version = reader.get<std::uint32_t>();
  if (!reader.ok() || magic != kTreeMagic) return corrupt("is none of Atoll's");
  if (version != kTreeVersion) {
    return Error{ErrorCode::kVersionUnsupported,
                 fmt::format("the dataset's hash tree is of version {}, this program reads {}; update atoll", version,
                             kTreeVersion)};
  }
  ChunkTreeIndex index;
  index.token_bytes = reader.get<std::uint32_t>();
  index.vocab_size = reader.get<std::uint32_t>();
  index.chunk_bytes = reader.get<std::uint32_t>();
  index.tokens = reader.get<std::uint64_t>();
  const auto shards = reader.get<std::uint32_t>();
  const auto parts = reader.get<std::uint32_t>();
  if (!reader.ok()) return corrupt("is cut short");
  ATOLL_RETURN_IF_ERROR(check_counts(index, shards, parts, bytes.size()));
  ATOLL_RETURN_IF_ERROR(read_shards(reader, shards, index));
  index.parts.reserve(parts);
  for (std::uint32_t i = 0; i < parts; ++i) index.parts.push_back(get_digest(reader));
  if (!reader.ok() || !reader.at_end()) return corrupt("is cut short, or goes on behind its end");
  return index;
}

Bytes encode_tree_part(std::span<const ChunkLeaf> leaves) {
  ByteWriter writer;
  for (const ChunkLeaf& leaf : leaves) {
    writer.put_bytes(leaf.sha256);
    writer.put(leaf.next_token);
  }
  return writer.take();
}

Result<std::vector<ChunkLeaf>> decode_tree_part(const ChunkTreeIndex& index, std::uint64_t part, ByteView bytes) {
  if (part >= index.parts.size() || bytes.size() != index.leaves_of(part) * kChunkLeafBytes ||
      sha256(bytes) != index.parts[part]) {
    return corrupt(fmt::format("has another part {} than its index says", part));
  }
  ByteReader reader(bytes);
  std::vector<ChunkLeaf> leaves(index.leaves_of(part));
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    leaves[i].sha256 = get_digest(reader);
    leaves[i].next_token = reader.get<std::uint32_t>();
    const bool last = part * kLeavesOfPart + i + 1 == index.chunks();
    if (!last && token_id(leaves[i].next_token) >= index.vocab_size)
      return corrupt("has a token outside the vocabulary");
  }
  return leaves;
}

ShardTable::ShardTable(const ChunkTreeIndex& index) : index_(index) {
  first_token_.reserve(index.shards.size());
  std::uint64_t first = 0;
  for (const TreeShard& shard : index.shards) {
    first_token_.push_back(first);
    first += shard.tokens;
  }
}

std::vector<ShardPiece> ShardTable::pieces_of(std::uint64_t chunk) const {
  std::uint64_t token = chunk * index_.chunk_tokens();
  const std::uint64_t end = token + index_.tokens_of(chunk);
  auto shard = static_cast<std::size_t>(std::ranges::upper_bound(first_token_, token) - first_token_.begin()) - 1;
  std::vector<ShardPiece> pieces;
  for (; token < end; ++shard) {
    const std::uint64_t until = std::min(end, first_token_[shard] + index_.shards[shard].tokens);
    pieces.push_back({shard, kTokenShardHeaderBytes + (token - first_token_[shard]) * index_.token_bytes,
                      (until - token) * index_.token_bytes});
    token = until;
  }
  return pieces;
}

Status check_tokens(const ChunkTreeIndex& index, ByteView bytes) {
  const std::uint32_t largest =
      index.token_bytes == 2 ? largest_token<std::uint16_t>(bytes) : largest_token<std::uint32_t>(bytes);
  if (largest < index.vocab_size) return ok_status();
  return Error{ErrorCode::kCorrupt,
               fmt::format("it holds token {}, but the vocabulary has {}", largest, index.vocab_size)};
}

Status check_chunk(const ChunkTreeIndex& index, std::uint64_t chunk, const ChunkLeaf& leaf, ByteView bytes) {
  if (bytes.size() != index.tokens_of(chunk) * index.token_bytes || sha256(bytes) != leaf.sha256) {
    return Error{ErrorCode::kCorrupt, "its SHA-256 is not the one that the run's dataset names"};
  }
  return check_tokens(index, bytes);
}

}  // namespace atl
