// The rounds by which a fetch brings an outer state to its target, for the island's own round log
// (net/disk/round_log.h): so it serves them on, and its disk leads over them again. A round is kept where all pieces of
// its average came, and every chunk is known as it was before the round and after it: not where chunks came whole. A
// thread of its own writes the pieces: whoever fetches never waits for the disk, and what that does not take in time is
// left out. On the disk an average lies under a name that means nothing until its round is logged.
//
// Owned by who fetches; one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "net/base/mailbox.h"
#include "net/disk/round_log.h"
#include "net/recovery/round_manifest.h"

namespace atl {

class FetchedRounds {
 public:
  // Of a run whose model has `numel` parameters in so many fragments.
  FetchedRounds(RoundLog log, std::uint64_t numel, std::uint32_t fragments);
  ~FetchedRounds();  // what is not logged is gone

  // ---- told by the plan (fetch_plan.h)
  void piece_came(const RoundManifest& round, std::size_t piece, ByteView bytes);  // verified
  // The chunk's digests at the outer steps from `from` on, one after the other.
  void chunk_was(std::uint64_t chunk, OuterStep from, std::span<const Digest> digests);
  void begin_anew();  // rounds of before are undone

  // At its end, perhaps on another thread, as RoundLog says of who changes it: those that are whole are logged, and how
  // many there are. What fails is told in the log of this process: it costs nothing but that round. Blocks on the disk.
  std::size_t log() &&;

 private:
  struct Average {  // as its manifest says
    SignedCommit record;
    WireFormat wire = WireFormat::kFp32;
    std::uint64_t bytes = 0;
    std::size_t pieces = 0;
  };
  struct Written {
    std::shared_ptr<const Average> of;
    std::optional<AverageWriter> file;  // nothing: the disk does not take it
    std::vector<bool> pieces;
    std::size_t missing = 0;
  };
  struct Item {
    std::shared_ptr<const Average> of;
    std::size_t piece = 0;
    Bytes bytes;
  };
  void write_what_comes();
  void write(const Item& item);
  void end_writing();
  std::optional<std::string> hash_at(OuterStep step) const;

  const RoundLog log_;
  const std::uint64_t numel_;
  const std::uint32_t fragments_;
  std::map<OuterStep, std::shared_ptr<const Average>> averages_;     // by round
  std::map<OuterStep, std::vector<std::optional<Digest>>> digests_;  // by outer step and chunk
  std::map<OuterStep, Written> written_;                             // the thread's while there is one
  Mailbox<Item> items_;
  std::jthread thread_;  // last
};

}  // namespace atl
