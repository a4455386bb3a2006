// The logged rounds that an island serves. What it says of an average, its piece hashes, takes reading all of it: that
// is done once, by the first who asks, as it is sent to him, and kept, for it is small. Thread-safe: threads of
// connections.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "net/base/bytes.h"
#include "net/base/mutex.h"
#include "net/base/result.h"
#include "net/collective/canonical_digest.h"
#include "net/disk/round_log.h"

namespace atl {

class ServedRounds {
 public:
  // Of piece hashes, 16 bytes for each 256 KiB: of averages of a terabyte together. Who was asked for least lately
  // goes.
  static constexpr std::uint64_t kMostBytes = 64u << 20;

  explicit ServedRounds(RoundLog log) : log_(std::move(log)) {}

  const RoundLog& log() const { return log_; }

  // The round's manifest (round_manifest.h), read a part at a time.
  class Manifest {
   public:
    std::uint64_t bytes() const { return head_.size() + sizeof(PieceHash) * digest_pieces(average_bytes()); }
    // kCorrupt where the average's bytes turn out not to be those that were committed.
    Status read(std::uint64_t offset, std::span<std::byte> part) const;

   private:
    friend class ServedRounds;
    struct Hashes;
    Manifest(AverageFile file, const SignedCommit& record, std::shared_ptr<Hashes> hashes);
    std::size_t average_bytes() const { return static_cast<std::size_t>(file_.info().bytes); }

    const AverageFile file_;
    const Bytes head_;
    const std::shared_ptr<Hashes> hashes_;
  };
  // kNotFound where it is not logged, or its average is known to be damaged.
  Result<std::shared_ptr<const Manifest>> manifest(OuterStep round);

 private:
  std::shared_ptr<Manifest::Hashes> hashes_of(const std::string& digest, std::uint64_t average_bytes);

  const RoundLog log_;
  Mutex mutex_;
  std::list<std::shared_ptr<Manifest::Hashes>> hashes_ ATOLL_GUARDED_BY(mutex_);  // the last asked for first
};

}  // namespace atl
