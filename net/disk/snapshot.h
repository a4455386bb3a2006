// A snapshot: an outer state on an island's disk, as chunks (net/recovery/outer_state.h), each of which may be of an
// earlier outer step than the state: the rounds since then, of the round log (round_log.h), bring it there. So a
// snapshot is written a chunk at a time from a state that goes on meanwhile, or from a network whose islands do, and
// whatever was written stays good. Private to the owner. The one definition of its bytes; a directory of its own:
//
//   outer.STEP.state/   STEP: the outer step to which it leads (outer steps applied); outer.STEP.N.state where that is
//                       taken
//     chunks.00000 ...  chunk after chunk, kChunksOfFile in each (2 GiB), fp32: a chunk's parameters, their momentum
//     index             what each chunk is; there only once all the others are, flushed
//     written           while it is being written: what each chunk is that is there already
//
// index:
//
//   offset  bytes  what
//        0      8  "ATLSTATE"
//        8      4  u32, version of this layout: 1
//       12      4  u32, outer step to which it leads
//       16      8  u64, numel: the model's parameters
//       24      8  u64, its number: higher than that of every one that lay beside it when it took its place
//       32      8  u64, seconds since 1970 when it did
//       40     64  tree hash of the state to which it leads (StateManifest::tree_hash), lower-case hex
//      104  36 each of its chunks: u32, outer step of which it is; SHA-256 of its bytes
//      end     32  SHA-256 of all before it
//
// written; whatever does not fit its checksum is the end, as a crash left it:
//
//        0      8  "ATLCHUNK"
//        8      4  u32, version of this layout: 1
//       12      8  u64, numel
//       20      8  the first of the SHA-256 of all before it
//       28  48 each chunk that is there, the last of a number counts: u32, its number; u32, outer step; SHA-256 of its
//                  bytes; the first 8 of the SHA-256 of these 40
//
// A single file of that name is an outer state of the layout before this one (outer_state_file.h): it is read as a
// snapshot, and never written.
//
// Any thread; block on the disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "net/base/bytes.h"
#include "net/base/id.h"
#include "net/base/result.h"
#include "net/base/sha256.h"
#include "net/wire/mesh.h"

namespace atl {

inline constexpr std::uint64_t kChunksOfFile = 128;

struct StoredChunk {
  OuterStep step;  // of which it is
  Digest sha256{};
  bool operator==(const StoredChunk&) const = default;
};

struct SnapshotInfo {
  HeldState state;  // to which it leads
  std::uint64_t numel = 0;
  std::uint64_t number = 0;
  std::uint64_t saved_at = 0;       // seconds since 1970
  std::vector<StoredChunk> chunks;  // of a single file without their digests: all zero
  OuterStep oldest_chunk() const;   // rounds from this one to the state's are needed; the state's own: none is
  OuterStep newest_chunk() const;   // every outer step from this one on can be made of it
};

// Its index. kNotFound when there is no such directory, kCorrupt when the index is not what was written (or is not
// there yet), or a file is not as long as it says.
Result<SnapshotInfo> peek_snapshot(const std::filesystem::path& path);
// Reads all of it on all processors, a chunk (16 MiB) of memory for each. kCorrupt names a chunk that is not what was
// written. Where all are of the state's own outer step, their tree hash is compared, too.
Result<SnapshotInfo> verify_snapshot(const std::filesystem::path& path);
// All that its files take on the disk.
std::uint64_t snapshot_bytes(const std::filesystem::path& path);

// Replaced atomically. Its chunks are there already, flushed.
Status write_snapshot_index(const std::filesystem::path& directory, const SnapshotInfo& info);

// One that is being written. One thread at a time.
class SnapshotWriter {
 public:
  // What a process before this one left there is gone on with, where it is of a model of this size; else it is begun
  // anew. Only chunks that were flushed count.
  static Result<SnapshotWriter> open(const std::filesystem::path& directory, std::uint64_t numel);
  SnapshotWriter(SnapshotWriter&&) noexcept;
  SnapshotWriter& operator=(SnapshotWriter&&) noexcept;
  ~SnapshotWriter();  // what was written stays

  const std::vector<std::optional<StoredChunk>>& chunks() const;  // that are there
  // In any order, also in the place of one that is there: a crash then leaves the one, the other, or neither (its bytes
  // are not those of its digest). Bytes: chunk_bytes of the manifest.
  Status put(std::uint64_t index, const StoredChunk& chunk, ByteView bytes);
  Result<Bytes> read(std::uint64_t index);  // verified; kCorrupt, and it is no more there, when it is not whole
  // All that was put is on the disk, and would be found by the next open(). After an error what was put since the last
  // one is no more there.
  Status flush();
  // All chunks are there, and lead to this state with the rounds that are logged: it takes its place, beside what is
  // called so already. What a process before this one left is read through first; kCorrupt names a chunk that is not
  // whole.
  Status finish(const HeldState& state, const std::filesystem::path& place) &&;

 private:
  struct Impl;
  explicit SnapshotWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Reads a snapshot's chunks, several threads at once. One that is removed meanwhile can still be read.
class SnapshotReader {
 public:
  static Result<SnapshotReader> open(const std::filesystem::path& path);
  SnapshotReader(SnapshotReader&&) noexcept;
  SnapshotReader& operator=(SnapshotReader&&) noexcept;
  ~SnapshotReader();

  const SnapshotInfo& info() const;
  // As it lies there, verified against its own digest, which it returns; kCorrupt names it. Both spans: of the chunk.
  // (Of a single file only the whole can be verified, by whoever reads it.)
  Result<Digest> read(std::uint64_t index, std::span<float> parameters, std::span<float> momentum) const;

 private:
  struct Impl;
  explicit SnapshotReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace atl
