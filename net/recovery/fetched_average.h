// What has come of the average of a committed round, by its pieces, of which each is verified: those that chunks of a
// state wait for are fetched, and kept in memory until these chunks are stepped. One thread, but for read().
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "net/base/result.h"
#include "net/model/fragments.h"
#include "net/recovery/outer_step.h"
#include "net/recovery/round_manifest.h"

namespace atl {

// Side by side.
struct PieceSpan {
  std::size_t first = 0, count = 0;
  std::size_t end() const { return first + count; }
};

// How many bytes of a fragment's average an outer step on this chunk reads; 0: it does not touch it.
std::uint64_t average_bytes_of_chunk(std::span<const ParameterRange> ranges, WireFormat wire, std::uint64_t chunk);

class FetchedAverage final : public AverageSource {
 public:
  // `ranges`: of the round's fragment; outlive this.
  FetchedAverage(RoundManifest manifest, std::span<const ParameterRange> ranges);

  const RoundManifest& manifest() const { return manifest_; }
  std::span<const ParameterRange> ranges() const { return ranges_; }

  // ---- what is wanted
  void want_nothing();  // what came, and what comes now, stays until trim()
  void want(std::uint64_t chunk);
  bool is_wanted() const;
  bool has(std::uint64_t chunk) const;  // all that it takes
  void stepped(std::uint64_t chunk);    // it wants no more; pieces that nobody else wants are dropped
  void trim();                          // what came and is not wanted is dropped, and from now on as it comes

  // ---- what is asked for
  bool is_open() const { return !open_.empty(); }
  std::size_t open_pieces() const { return open_.size(); }
  std::uint64_t first_open_chunk() const;  // that waits for what is not asked for; is_open()
  PieceSpan ask(std::size_t most);         // the next pieces, side by side; is_open()
  void ask_again(PieceSpan span);          // of somebody else
  void give_back(PieceSpan asked);         // this request has ended: what nobody else is asked for is open again
  int asked(std::size_t piece) const { return asked_[piece]; }  // requests under way
  bool needs(std::size_t piece) const { return (wanted_by_[piece] > 0 || keeps_all_) && !came_.contains(piece); }
  struct Accepted {
    std::uint64_t fresh_bytes = 0;               // that were wanted and had not come
    std::vector<std::size_t> fresh_pieces = {};  // they are these
    Status status = ok_status();  // kCorrupt when a piece is not what the manifest says; those before it are kept
  };
  // What came of them, from the first on; a piece that is cut off is left out.
  Accepted accept(PieceSpan asked, ByteView bytes);

  Result<ByteView> read(std::uint64_t offset, std::size_t bytes, Bytes& room) const override;

 private:
  PieceSpan pieces_of(std::uint64_t chunk) const;
  void open_or_close(std::size_t piece);

  const RoundManifest manifest_;
  const std::span<const ParameterRange> ranges_;
  std::vector<std::uint32_t> wanted_by_;    // chunks, by piece
  std::vector<std::uint64_t> first_chunk_;  // that wants it, by piece
  std::vector<std::uint8_t> asked_;         // requests, by piece
  std::map<std::size_t, Bytes> came_;       // pieces
  std::set<std::size_t> open_;              // wanted, not come, not asked for
  bool keeps_all_ = false;                  // nobody knows yet what will be wanted
};

}  // namespace atl
