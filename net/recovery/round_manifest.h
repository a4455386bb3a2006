// What an island says of a committed round whose average it serves: the hub's signed record and the average's piece
// hashes, so that whoever fetches the average knows of each piece whether it is right, and a liar by the piece. Two
// islands' view of it: the one definition of its bytes, little-endian:
//
//   offset  bytes  what
//        0      8  "ATLPIECE"
//        8      4  u32, version of this layout: 1
//       12      4  u32, wire format of the average (kernels/wire_format.h)
//       16      8  u64, bytes of the average
//       24      4  u32, bytes of the record
//       28         the hub's signed record, as JSON (encode(SignedCommit), net/wire/mesh.h)
//               16 hash of each piece of 256 KiB (net/collective/canonical_digest.h), whose digest the record signs
//
// Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/wire_format.h"
#include "net/base/bytes.h"
#include "net/base/result.h"
#include "net/collective/canonical_digest.h"
#include "net/tls/identity.h"
#include "net/wire/mesh.h"

namespace atl {

struct RoundManifest {
  SignedCommit record;
  WireFormat wire = WireFormat::kFp32;
  std::uint64_t bytes = 0;
  std::vector<PieceHash> pieces;

  // Of one piece; index < pieces.size().
  std::size_t piece_bytes(std::size_t index) const;
};

// All of it before the hashes.
Bytes round_manifest_head(const SignedCommit& record, WireFormat wire, std::uint64_t bytes);
// Of an average of so many values.
std::uint64_t max_round_manifest_bytes(std::int64_t numel);
// kCorrupt unless the hub of the run of `self` signed it for this round, the hashes are those of the average that it
// committed, and this is an average of `numel` values of a fragment of `fragments`.
Result<RoundManifest> read_round_manifest(ByteView bytes, const Identity& self, OuterStep round, std::int64_t numel,
                                          std::uint32_t fragments);

}  // namespace atl
