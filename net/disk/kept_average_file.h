// average.kept: the average of the open round, written before the island says that it holds it: with the outer state
// before it, it makes the state after it, also on an island whose process died before the commit came. Private to the
// owner. One file a fragment (average.FRAGMENT.kept after the first), which the commit moves into the round log
// (round_log.h); the one definition of its bytes:
//
//   offset  bytes  what
//        0      8  "ATLAVERG"
//        8      4  u32, version of this layout: 1
//       12      4  u32, round
//       16      4  u32, wire format (kernels/wire_format.h)
//       20      8  u64, bytes of the average
//       28     64  its digest (net/collective/canonical_digest.h), lower-case hex
//       92         the canonical bytes: encoded_bytes(wire, numel)
//
// Any thread; block on the disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "kernels/wire_format.h"
#include "net/base/bytes.h"
#include "net/base/id.h"
#include "net/base/new_file.h"
#include "net/base/result.h"
#include "net/disk/stored_file.h"

namespace atl {

// What such a file says of itself.
struct KeptAverageInfo {
  OuterStep round;
  WireFormat wire = WireFormat::kFp32;
  std::string digest;       // canonical_digest, hex
  std::uint64_t bytes = 0;  // of the average
};

struct KeptAverage {
  OuterStep round;
  WireFormat wire = WireFormat::kFp32;
  std::string digest;  // canonical_digest, hex
  Bytes canonical;
};

// One that is written while it is made. One thread.
class AverageWriter {
 public:
  static Result<AverageWriter> create(const std::filesystem::path& file, OuterStep round, WireFormat wire,
                                      std::uint64_t bytes);
  Status write(std::uint64_t offset, ByteView canonical);  // from there on; in any order, each byte once
  // All of it was written, and this is its digest: it takes its place, flushed.
  Status finish(const std::string& digest);

 private:
  AverageWriter(NewFile file, std::filesystem::path path, OuterStep round, WireFormat wire, std::uint64_t bytes);

  NewFile file_;
  std::filesystem::path path_;
  OuterStep round_;
  WireFormat wire_;
  std::uint64_t bytes_;
};

// Replaced atomically, from the caller's memory. `digest` is that of `canonical`, as the caller knows it already.
Status save_average(const std::filesystem::path& file, OuterStep round, WireFormat wire, const std::string& digest,
                    ByteView canonical);
// Its header alone. kNotFound when there is none, kCorrupt when it is not as long as it says.
Result<KeptAverageInfo> peek_average(const std::filesystem::path& file);
// Reads all of it, in constant memory. kCorrupt when the bytes are not those of its digest.
Result<KeptAverageInfo> verify_average(const std::filesystem::path& file);
// All of it, verified. kNotFound when there is none, or one of another round or digest; kCorrupt when it is not whole.
Result<KeptAverage> load_average(const std::filesystem::path& file, OuterStep round, const std::string& digest);

// An average's bytes as they lie there, not verified; they stay what they are while this lives, whatever takes the
// file's place. Several threads at once.
class AverageFile {
 public:
  // As peek_average().
  static Result<AverageFile> open(const std::filesystem::path& file);

  const KeptAverageInfo& info() const { return info_; }
  Status read(std::uint64_t offset, std::span<std::byte> bytes) const;

 private:
  AverageFile(StoredFile file, KeptAverageInfo info) : file_(std::move(file)), info_(std::move(info)) {}

  StoredFile file_;
  KeptAverageInfo info_;
};

}  // namespace atl
