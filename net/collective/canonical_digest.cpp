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

std::vector<Digest> chunk_digests(const RingPayload& payload, int world_size, ByteView canonical) {
  std::vector<Digest> digests;
  for (int chunk = 0; chunk < world_size; ++chunk) {
    Sha256 hash;
    for (std::int64_t bucket = 0; bucket < payload.buckets(); ++bucket) {
      if (payload.is_final(bucket)) continue;
      const auto begin =
          static_cast<std::size_t>(encoded_bytes(payload.wire, payload.chunk_begin(bucket, chunk, world_size)));
      const auto end =
          static_cast<std::size_t>(encoded_bytes(payload.wire, payload.chunk_begin(bucket, chunk + 1, world_size)));
      hash.update(canonical.subspan(begin, end - begin));
    }
    digests.push_back(hash.finish());
  }
  return digests;
}

}  // namespace atl
