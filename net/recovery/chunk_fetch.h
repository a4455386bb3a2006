// The chunks of the outer state that are on their way here (chunk_pieces.h): which part of which is asked for next, and
// what becomes of what comes. A chunk comes whole, from one source, as long as there are many: an answer that has begun
// goes on when its source takes the next outer step, but what was not asked for before is gone. When few are left they
// are cut, so that all sources end together. No sockets, no clock; owned by the fetch, one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "net/base/id.h"
#include "net/recovery/chunk_pieces.h"
#include "net/recovery/fetch_plan.h"

namespace atl {

struct ChunkPart {
  std::uint64_t index = 0;
  StoredChunk is;
  PieceSpan pieces;
};

class ChunkFetch {
 public:
  // So many at once: 256 MiB, and as much again in requests under way. Who holds more than sixteen sources' links full
  // has them take parts of what is slow.
  static constexpr std::size_t kMostChunks = 16;

  explicit ChunkFetch(FetchPlan& plan) : plan_(plan) {}  // outlives this

  // For one of `sources`, which serve `requests` together; the plan has its manifest. It counts as asked.
  std::optional<ChunkPart> next(std::size_t sources, std::size_t requests);
  void ask_again(const ChunkPart& part);
  void give_back(const ChunkPart& part);  // this request has ended

  bool needs(const ChunkPart& part, std::size_t piece) const;  // it is still to come
  int asked(const ChunkPart& part, std::size_t piece) const;   // requests under way
  bool may_be_split(const ChunkPart& part) const;
  bool is_all(const ChunkPart& part) const;  // of the chunk
  std::uint64_t bytes_of(const ChunkPart& part) const;
  std::uint64_t offset_of(const ChunkPart& part) const { return part.pieces.first * kChunkPieceBytes; }

  struct Taken {
    std::uint64_t useful = 0, lost = 0;  // bytes, of chunks that are whole, or of no use
    std::vector<IslandId> liars;         // known by now
  };
  // Whole pieces, from the first on.
  Taken take(const ChunkPart& part, Bytes&& bytes, const IslandId& from);

 private:
  struct OnWay {
    StoredChunk is;
    ChunkPieces pieces;
  };
  std::map<std::uint64_t, OnWay>::iterator find(const ChunkPart& part);
  std::map<std::uint64_t, OnWay>::const_iterator find(const ChunkPart& part) const;
  void forget_stale();
  std::size_t pieces_at_once(std::size_t sources, std::size_t requests) const;

  FetchPlan& plan_;
  std::map<std::uint64_t, OnWay> on_way_;  // by chunk
  std::uint64_t forgotten_ = 0;            // bytes
};

}  // namespace atl
