// The chunks of a run's dataset on an island: in its cache, or fetched from where they can be had (mirrors, other
// islands, the hub), several at once and ahead of their use, each verified before anybody sees it. Of the dataset it
// holds the trees' indices, the parts of trees that were used, and maps of the chunks in use; all else is on the disk,
// within what the owner allows, or elsewhere.
//
// A chunk that nobody gives, or that all give wrong, is tried again for `patience`; then it is given up until the next
// plan, and whoever needs it is told at once: the lease goes back. An origin that fails is asked last for a while.
//
// One thread plans and gets; its own threads fetch; those of the island's port ask what it holds.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/result.h"
#include "net/data/blob_cache.h"
#include "net/data/chunk_peers.h"
#include "net/data/chunk_tree.h"
#include "net/data/data_origin.h"

namespace atl {

// Verified. Immutable; any thread.
class Chunk {
 public:
  Chunk(MappedFile file, std::uint32_t token_bytes, std::uint32_t next_token);
  Chunk(Bytes bytes, std::uint32_t token_bytes, std::uint32_t next_token);
  // Tokens [first, first + to.size()) of it; one behind its last is the next chunk's first, where there is one.
  void read(std::uint64_t first, std::span<std::int32_t> to) const;

 private:
  std::optional<MappedFile> file_;
  Bytes bytes_;
  ByteView tokens_;
  std::uint32_t token_bytes_;
  std::uint32_t next_token_;
};

struct TreeFile {
  std::string source;  // for people
  std::string file;    // as origins know it
  std::uint64_t index_bytes = 0;
  std::string sha256;  // hex, of the index
};

struct ChunkStoreOptions {
  int connections = 4;                         // threads that fetch
  std::chrono::milliseconds patience{60'000};  // with a chunk that cannot be had
  std::chrono::milliseconds first_pause{250}, longest_pause{10'000};
  std::chrono::milliseconds aside{15'000};       // an origin that failed is asked last for so long
  std::chrono::milliseconds in_vain{2'000};      // a wait of so long may well last longer
  std::chrono::milliseconds others_wait{4'000};  // of another island for a chunk that is being fetched
};

struct ChunkStoreParts {
  std::vector<TreeFile> trees;
  // Of each tree, by its number; called once on each thread that fetches, and by open().
  std::function<Result<std::vector<DataOrigins>>()> make_origins;
  std::function<Result<std::unique_ptr<ChunkPeers>>()> make_peers;  // likewise, on those that fetch; empty: none
  std::unique_ptr<BlobCache> cache;
  // Why nothing comes, while it is tried again; empty: bytes come again. On any of its threads, one at a time.
  std::function<void(const std::string& why)> trouble;
  // Asked now and then while get() waits: the error with which it is to end at once, if it is. `in_vain`: a try has
  // failed, or it has taken long. May be empty.
  std::function<std::optional<Error>(bool in_vain)> ends_wait;
};

class ChunkStore final : public HeldChunks {
 public:
  // Fetches the indices, for as long as it takes; `progress` in bytes. kAborted soon after `abort` is raised, which
  // outlives the store.
  static Result<std::unique_ptr<ChunkStore>> open(ChunkStoreParts parts, const AbortSignal& abort,
                                                  const std::function<void(std::uint64_t, std::uint64_t)>& progress,
                                                  const ChunkStoreOptions& options = {});
  ~ChunkStore() override;

  const ChunkTreeIndex& index(std::uint32_t tree) const;

  // What will be used, in this order and each once; in place of the plan before. It is fetched in the order, as far
  // ahead of get() as half of the cache holds. The first `needed` of them are; the others may be, and are never given
  // up.
  void plan(std::vector<ChunkId> chunks, std::size_t needed);
  // Waits for it. kUnreachable: it is given up, with why. kAborted, and what ends_wait says.
  Result<std::shared_ptr<const Chunk>> get(ChunkId id);
  // Why one of those that are needed is given up.
  std::optional<Error> given_up() const;

  Holding holding(ChunkId id) const override;
  Result<MappedFile> held(ChunkId id, const AbortSignal& abort) override;

 private:
  class Impl;
  explicit ChunkStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace atl
