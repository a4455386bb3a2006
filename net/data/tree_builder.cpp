#include "net/data/tree_builder.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "net/base/file.h"
#include "net/base/mutex.h"
#include "net/base/new_file.h"
#include "net/base/parallel.h"
#include "net/data/token_shard.h"
#include "net/data/tree_journal.h"

namespace atl {
namespace {

constexpr std::uint64_t kToldBytes = 64u << 20;

// A shard is one thread's: its own hash and those of its chunks are taken in one pass.
class TreeBuilder {
 public:
  TreeBuilder(const Dataset& dataset, Split split, std::uint32_t chunk_bytes)
      : dataset_(dataset), split_(split), entries_(dataset.manifest().shards(split)) {
    index_.vocab_size = dataset.manifest().vocab_size;
    index_.chunk_bytes = chunk_bytes;
    index_.token_bytes = dataset.token_bytes(split);
    for (const ShardEntry& entry : entries_) {
      first_token_.push_back(index_.tokens);
      index_.shards.push_back({entry.file, entry.tokens});
      index_.tokens += entry.tokens;
    }
    leaves_.resize(index_.chunks());
  }

  // What the leaves depend on.
  Digest digest_of_all() const {
    const std::string text =
        fmt::format("{} {} {}", index_.chunk_bytes, split_ == Split::kTrain ? "train" : "validation",
                    dataset_.manifest().to_json());
    return sha256(as_bytes(text));
  }

  // `journal`: null where the disk takes none.
  Status hash_all(TreeJournal* journal, const OnTreeProgress& progress) {
    progress_ = progress;
    for (const ShardEntry& entry : entries_) all_bytes_ += entry.bytes;
    const auto taken_up = journal != nullptr ? take_up(journal->take_leaves()) : std::nullopt;
    if (!taken_up) journal = nullptr;
    std::size_t first = taken_up.value_or(0);
    ATOLL_RETURN_IF_ERROR(tell(0));
    while (first < entries_.size()) {
      const std::size_t count = std::min(parallel_threads(), entries_.size() - first);
      std::vector<Status> hashed(count, ok_status());
      parallel_for(count, [&](std::size_t i) { hashed[i] = hash_shard(first + i); });
      for (std::size_t i = 0; i < count; ++i) {
        if (!hashed[i].ok()) return hashed[i].error().with_context(entries_[first + i].file);
      }
      const std::uint64_t begin = first_leaf_of(first);
      first += count;
      const std::span<const ChunkLeaf> made = std::span(leaves_).subspan(begin, first_leaf_of(first) - begin);
      const Status kept = journal != nullptr ? journal->add(made) : ok_status();
      if (kept.ok()) continue;
      spdlog::warn("data journal=none error=\"{}\"", kept.error().message);
      journal = nullptr;
    }
    return ok_status();
  }

  Status write(const std::filesystem::path& path) {
    std::vector<Bytes> parts;
    for (std::uint64_t first = 0; first < leaves_.size(); first += kLeavesOfPart) {
      const std::size_t count = std::min<std::uint64_t>(kLeavesOfPart, leaves_.size() - first);
      parts.push_back(encode_tree_part(std::span(leaves_).subspan(first, count)));
      index_.parts.push_back(sha256(parts.back()));
    }
    const Bytes head = encode(index_);
    // What readers would not take is not written.
    ATOLL_RETURN_IF_ERROR(decode_chunk_tree_index(head));
    ATOLL_ASSIGN_OR_RETURN(NewFile file, NewFile::create(path, FileMode::kPublic));
    ByteWriter length;
    length.put(static_cast<std::uint64_t>(head.size()));
    ATOLL_RETURN_IF_ERROR(file.write(head));
    for (const Bytes& part : parts) ATOLL_RETURN_IF_ERROR(file.write(part));
    ATOLL_RETURN_IF_ERROR(file.write(length.bytes()));
    return file.take_place();
  }

 private:
  // Of the chunks that begin in it or behind it.
  std::uint64_t first_leaf_of(std::size_t shard) const {
    const std::uint64_t first = shard < first_token_.size() ? first_token_[shard] : index_.tokens;
    return (first + index_.chunk_tokens() - 1) / index_.chunk_tokens();
  }

  // Which shard is the next; nothing where they are not those of whole shards.
  std::optional<std::size_t> take_up(const std::vector<ChunkLeaf>& leaves) {
    std::size_t shard = 0;
    while (shard < entries_.size() && first_leaf_of(shard) < leaves.size()) ++shard;
    if (leaves.size() > leaves_.size() || first_leaf_of(shard) != leaves.size()) return std::nullopt;
    std::ranges::copy(leaves, leaves_.begin());
    const MutexLock lock(mutex_);
    for (std::size_t i = 0; i < shard; ++i) done_bytes_ += entries_[i].bytes;
    return shard;
  }

  Status tell(std::uint64_t bytes) {
    const MutexLock one_at_a_time(mutex_);
    done_bytes_ += bytes;
    if (!progress_ || progress_(done_bytes_, all_bytes_)) return ok_status();
    return Error{ErrorCode::kAborted, "interrupted"};
  }

  Status hash_shard(std::size_t shard) {
    const ByteView file = dataset_.shard_file(split_, shard);
    if (file.size() != kTokenShardHeaderBytes + entries_[shard].tokens * index_.token_bytes) {
      return Error{ErrorCode::kInvalidArgument,
                   "it has tokens of another width than the others; prepare the data anew"};
    }
    Sha256 whole;
    whole.update(file.first(kTokenShardHeaderBytes));
    std::uint64_t untold = kTokenShardHeaderBytes;
    Status chunks = ok_status();
    const std::uint64_t end = first_token_[shard] + entries_[shard].tokens;
    for (std::uint64_t token = first_token_[shard], until = 0; token < end; token = until) {
      const std::uint64_t chunk = token / index_.chunk_tokens();
      until = std::min(end, (chunk + 1) * index_.chunk_tokens());
      const ByteView bytes = tokens_of(shard, token - first_token_[shard], until - token);
      whole.update(bytes);
      // A chunk is whose shard it begins in; its bytes are in a processor's cache now.
      const bool begins_here = token % index_.chunk_tokens() == 0;
      if (begins_here && chunks.ok()) chunks = hash_chunk(shard, chunk);
      untold += bytes.size();
      if (untold < kToldBytes && until < end) continue;
      ATOLL_RETURN_IF_ERROR(tell(std::exchange(untold, 0)));
    }
    if (to_hex(whole.finish()) == entries_[shard].sha256) return chunks;
    return Error{ErrorCode::kCorrupt,
                 "its SHA-256 is not the one that dataset.json says: it was damaged or exchanged; prepare it again"};
  }

  Status hash_chunk(std::size_t shard, std::uint64_t chunk) {
    Sha256 hash;
    std::uint64_t token = chunk * index_.chunk_tokens();
    const std::uint64_t end = token + index_.tokens_of(chunk);
    for (; token < end; ++shard) {
      const std::uint64_t until = std::min(end, first_token_[shard] + entries_[shard].tokens);
      const ByteView piece = tokens_of(shard, token - first_token_[shard], until - token);
      ATOLL_RETURN_IF_ERROR(check_tokens(index_, piece));
      hash.update(piece);
      token = until;
    }
    leaves_[chunk].sha256 = hash.finish();
    if (token == index_.tokens) return ok_status();
    if (token < first_token_[shard - 1] + entries_[shard - 1].tokens) --shard;
    std::uint32_t next = 0;
    std::ranges::copy(tokens_of(shard, token - first_token_[shard], 1), reinterpret_cast<std::byte*>(&next));
    leaves_[chunk].next_token = next;
    return ok_status();
  }

  ByteView tokens_of(std::size_t shard, std::uint64_t first, std::uint64_t count) const {
    return dataset_.shard_file(split_, shard)
        .subspan(kTokenShardHeaderBytes + first * index_.token_bytes, count * index_.token_bytes);
  }

  const Dataset& dataset_;
  const Split split_;
  OnTreeProgress progress_;
  std::uint64_t all_bytes_ = 0;
  Mutex mutex_;
  std::uint64_t done_bytes_ ATOLL_GUARDED_BY(mutex_) = 0;
  const std::vector<ShardEntry>& entries_;
  ChunkTreeIndex index_;
  std::vector<std::uint64_t> first_token_;
  std::vector<ChunkLeaf> leaves_;  // each is the thread's that has the shard where its chunk begins
};

}  // namespace

Status make_chunk_tree(const Dataset& dataset, Split split, std::uint32_t chunk_bytes,
                       const std::filesystem::path& path, const OnTreeProgress& progress) {
  TreeBuilder builder(dataset, split, chunk_bytes);
  auto journal = TreeJournal::open(path, builder.digest_of_all());
  if (!journal.ok()) spdlog::warn("data journal=none error=\"{}\"", journal.error().message);
  ATOLL_RETURN_IF_ERROR(builder.hash_all(journal.ok() ? &*journal : nullptr, progress));
  ATOLL_RETURN_IF_ERROR(builder.write(path));
  if (journal.ok()) journal->remove();
  return ok_status();
}

// The index's length stands at the end of the file, for who writes a run of it; who has the run knows it from there.
Result<TreeHead> read_tree_head(const std::filesystem::path& file) {
  ATOLL_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::open(file));
  const ByteView bytes = mapped.bytes();
  const auto bad = [&](std::string_view why) {
    return Error{ErrorCode::kCorrupt, fmt::format("{} {}; make it again: atoll data index", file.string(), why)};
  };
  if (bytes.size() < kTreeTrailerBytes) return bad("is no hash tree");
  ByteReader trailer(bytes.last(kTreeTrailerBytes));
  TreeHead head;
  head.index_bytes = trailer.get<std::uint64_t>();
  if (head.index_bytes > bytes.size() - kTreeTrailerBytes || head.index_bytes > kMaxTreeIndexBytes) {
    return bad("is no hash tree");
  }
  const ByteView index = bytes.first(head.index_bytes);
  auto decoded = decode_chunk_tree_index(index);
  if (!decoded.ok()) return decoded.error().with_context(file.string());
  head.index = std::move(*decoded);
  if (head.index.tree_bytes(head.index_bytes) + kTreeTrailerBytes != bytes.size()) return bad("is cut short");
  head.sha256 = sha256_hex(index);
  return head;
}

}  // namespace atl
