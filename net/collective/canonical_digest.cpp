#include "net/collective/canonical_digest.h"

#include <algorithm>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace atl {

PieceHash hash_of_piece(ByteView canonical, std::size_t index) {
  const std::size_t begin = index * kDigestPieceBytes;
  const ByteView piece = canonical.subspan(begin, std::min(kDigestPieceBytes, canonical.size() - begin));
  XXH128_canonical_t big_endian;
  XXH128_canonicalFromHash(&big_endian, XXH3_128bits(piece.data(), piece.size()));
  PieceHash hash;
  std::memcpy(hash.data(), big_endian.digest, hash.size());
  return hash;
}

Digest digest_of_pieces(const std::vector<PieceHash>& pieces) {
  Sha256 hash;
  for (const PieceHash& piece : pieces) hash.update(piece);
  return hash.finish();
}

Digest canonical_digest(ByteView canonical) {
  std::vector<PieceHash> pieces;
  for (std::size_t i = 0; i < digest_pieces(canonical.size()); ++i) pieces.push_back(hash_of_piece(canonical, i));
  return digest_of_pieces(pieces);
}

}  // namespace atl
