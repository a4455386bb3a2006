#include "net/collective/canonical_digest.h"

#include <algorithm>

namespace atl {

ByteView digest_piece(ByteView canonical, std::size_t index) {
  const std::size_t begin = index * kDigestPieceBytes;
  return canonical.subspan(begin, std::min(kDigestPieceBytes, canonical.size() - begin));
}

Digest digest_of_pieces(const std::vector<Digest>& pieces) {
  Sha256 hash;
  for (const Digest& piece : pieces) hash.update(piece);
  return hash.finish();
}

Digest canonical_digest(ByteView canonical) {
  std::vector<Digest> pieces;
  for (std::size_t i = 0; i < digest_pieces(canonical.size()); ++i) {
    pieces.push_back(sha256(digest_piece(canonical, i)));
  }
  return digest_of_pieces(pieces);
}

}  // namespace atl
