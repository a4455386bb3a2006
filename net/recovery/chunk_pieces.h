// A chunk of the outer state on its way here, in pieces that may come from several sources at once: so all of them have
// their part of the last chunks, and what is asked twice is a piece. Only the whole of it has a digest. Where that is
// wrong and several sources had a part in it, one of them is asked for all of it, and who had sent other bytes is known
// when it is right. Owned by who fetches; one thread.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "net/base/bytes.h"
#include "net/base/id.h"
#include "net/recovery/fetched_average.h"
#include "net/recovery/outer_state.h"

namespace atl {

inline constexpr std::size_t kChunkPieceBytes = 1u << 20;
inline constexpr std::size_t kChunkPieces = kStateChunkBytes / kChunkPieceBytes;  // of a chunk that is not the last

class ChunkPieces {
 public:
  explicit ChunkPieces(std::uint64_t bytes);

  std::size_t pieces() const { return asked_.size(); }
  std::uint64_t bytes_of(PieceSpan span) const;

  // ---- what is asked for
  std::size_t open() const;                                     // pieces that are neither here nor asked for
  PieceSpan ask(std::size_t most);                              // the first of these, side by side; open() > 0
  void ask_again(PieceSpan span);                               // of somebody else
  void give_back(PieceSpan asked);                              // this request has ended
  int asked(std::size_t piece) const { return asked_[piece]; }  // requests under way
  bool asked_by_anybody() const;
  bool is_of_one() const { return of_one_; }  // all pieces come from one source

  // ---- what came
  bool has(std::size_t piece) const { return is_here_[piece]; }
  // Whole pieces, from the first on; where it is of one source, all of them or none. Returns how many bytes were new.
  std::uint64_t put(PieceSpan asked, Bytes&& bytes, const IslandId& from);
  bool is_whole() const { return here_ == pieces(); }
  ByteView bytes() const { return bytes_; }  // is_whole()
  std::uint64_t bytes_here() const;
  bool had_several() const { return from_.size() > 1; }  // sources
  void was_wrong();                                      // it is whole, and is not what it should be: asked for anew
  std::vector<IslandId> liars() const;                   // it is whole, and right: who had sent something else

 private:
  void take(std::size_t piece, ByteView bytes, const IslandId& from);

  const std::uint64_t size_;
  bool of_one_ = false;
  Bytes bytes_;  // [size_] once anything is here
  std::vector<std::uint8_t> asked_;
  std::vector<bool> is_here_;
  std::size_t here_ = 0;
  std::vector<IslandId> source_;  // by piece
  std::set<IslandId> from_;
  // Of the first time that it was wrong.
  Bytes wrong_;
  std::vector<IslandId> wrong_source_;
};

}  // namespace atl
