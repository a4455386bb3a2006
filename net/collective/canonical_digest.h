// The digest of canonical bytes, by which members see that they hold the same average before it is committed: SHA-256
// over the 128-bit XXH3 hashes, one after the other in canonical (big-endian) form, of the bytes' pieces of
// kDigestPieceBytes (the last may be shorter; no bytes: no piece). In pieces, so that several threads hash while the
// ring runs.
//
// XXH3 finds every accident at the memory's rate, which SHA-256 would halve on loopback. It is no defence against a
// member that forges colliding bytes on purpose: such a split shows right after the commit, when the hub compares the
// SHA-256 tree hashes of everybody's outer state.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "net/base/bytes.h"
#include "net/base/sha256.h"
#include "net/collective/ring_schedule.h"

namespace atl {

inline constexpr std::size_t kDigestPieceBytes = 256 << 10;

using PieceHash = std::array<std::byte, 16>;

inline std::size_t digest_pieces(std::size_t bytes) { return (bytes + kDigestPieceBytes - 1) / kDigestPieceBytes; }
PieceHash hash_of_piece(ByteView canonical, std::size_t index);
Digest digest_of_pieces(const std::vector<PieceHash>& pieces);
// All of it, on the calling thread.
Digest canonical_digest(ByteView canonical);
// By chunk of a ring of `world_size` (ring_schedule.h): SHA-256 over the bytes of that chunk in all buckets that
// travelled.
std::vector<Digest> chunk_digests(const RingPayload& payload, int world_size, ByteView canonical);

}  // namespace atl
