#include "net/collective/final_pieces.h"

#include <algorithm>

namespace atl {

FinalPieces::FinalPieces(const RingPayload& payload) : payload_(payload) {
  const auto bytes = static_cast<std::size_t>(encoded_bytes(payload.wire, payload.numel));
  for (std::size_t piece = 0; piece < digest_pieces(bytes); ++piece) {
    piece_missing_.push_back(
        static_cast<std::uint32_t>(std::min(kDigestPieceBytes, bytes - piece * kDigestPieceBytes)));
  }
  hashes_.resize(piece_missing_.size());
  for (std::int64_t bucket = 0; bucket < payload.buckets(); ++bucket) {
    bucket_missing_.push_back(static_cast<std::uint64_t>(payload.bucket_bytes(bucket)));
    if (!payload.is_final(bucket)) continue;
    count(static_cast<std::uint64_t>(encoded_bytes(payload.wire, payload.bucket_begin(bucket))),
          static_cast<std::uint64_t>(payload.bucket_bytes(bucket)));
  }
}

std::size_t FinalPieces::count(std::uint64_t first_byte, std::uint64_t bytes) {
  const std::uint64_t end = first_byte + bytes;
  std::size_t whole = 0;
  for (std::uint64_t piece = first_byte / kDigestPieceBytes; piece * kDigestPieceBytes < end; ++piece) {
    const std::uint64_t piece_begin = piece * kDigestPieceBytes;
    const auto here = std::min(end, piece_begin + kDigestPieceBytes) - std::max(first_byte, piece_begin);
    piece_missing_[piece] -= static_cast<std::uint32_t>(here);
    if (piece_missing_[piece] > 0) continue;
    to_hash_.push_back(piece);
    ++whole;
  }
  const auto bucket_bytes = static_cast<std::uint64_t>(encoded_bytes(payload_.wire, payload_.bucket_numel));
  bucket_missing_[first_byte / bucket_bytes] -= bytes;
  return whole;
}

std::vector<bool> FinalPieces::whole_buckets() const {
  std::vector<bool> whole;
  for (const std::uint64_t missing : bucket_missing_) whole.push_back(missing == 0);
  return whole;
}

std::optional<std::size_t> FinalPieces::take_to_hash() {
  if (to_hash_.empty()) return std::nullopt;
  const std::size_t piece = to_hash_.front();
  to_hash_.pop_front();
  return piece;
}

void FinalPieces::hashed(std::size_t piece, const PieceHash& hash) {
  hashes_[piece] = hash;
  ++hashed_count_;
}

}  // namespace atl
