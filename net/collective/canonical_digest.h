// The digest of canonical bytes, by which members see that they hold the same average: SHA-256 over the SHA-256s, one
// after the other, of the bytes' pieces of kDigestPieceBytes (the last may be shorter; no bytes: no piece). In pieces,
// so that several threads hash while the ring runs, and a part can be verified on its own.
#pragma once

#include <cstddef>
#include <vector>

#include "net/base/bytes.h"
#include "net/base/sha256.h"

namespace atl {

inline constexpr std::size_t kDigestPieceBytes = 256 << 10;

inline std::size_t digest_pieces(std::size_t bytes) { return (bytes + kDigestPieceBytes - 1) / kDigestPieceBytes; }
ByteView digest_piece(ByteView canonical, std::size_t index);
Digest digest_of_pieces(const std::vector<Digest>& pieces);
// All of it, on the calling thread.
Digest canonical_digest(ByteView canonical);

}  // namespace atl
