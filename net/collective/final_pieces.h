// Which bytes of an attempt's canonical bytes are final: the pieces of the digest (canonical_digest.h) that can be
// hashed, and the buckets that are whole. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "net/base/sha256.h"
#include "net/collective/canonical_digest.h"
#include "net/collective/ring_schedule.h"

namespace atl {

class FinalPieces {
 public:
  // The payload's final buckets are counted already. `payload` outlives this.
  explicit FinalPieces(const RingPayload& payload);

  // Of one bucket, each byte once. Returns how many pieces can be hashed now that could not before.
  std::size_t count(std::uint64_t first_byte, std::uint64_t bytes);
  std::vector<bool> whole_buckets() const;

  std::optional<std::size_t> take_to_hash();
  void hashed(std::size_t piece, const PieceHash& hash);
  bool all_hashed() const { return hashed_count_ == hashes_.size(); }
  // Once all are hashed.
  Digest digest() const { return digest_of_pieces(hashes_); }

 private:
  const RingPayload& payload_;
  std::vector<std::uint32_t> piece_missing_;   // bytes of each piece that are not final yet
  std::vector<std::uint64_t> bucket_missing_;  // the same of each bucket
  std::deque<std::size_t> to_hash_;
  std::vector<PieceHash> hashes_;
  std::size_t hashed_count_ = 0;
};

}  // namespace atl
