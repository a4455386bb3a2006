#include "net/tokenizer/bpe_tables.h"

#include <algorithm>
#include <bit>
#include <random>

#include "net/tokenizer/piece_hash.h"

namespace atl {

std::uint64_t draw_hash_seed() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32 | device()) | 1u;
}

TokenBytes::TokenBytes(std::span<const std::string> tokens) {
  begins_.reserve(tokens.size() + 1);
  for (const std::string& token : tokens) {
    begins_.push_back(static_cast<std::uint32_t>(bytes_.size()));
    bytes_ += token;
  }
  begins_.push_back(static_cast<std::uint32_t>(bytes_.size()));
}

PairTable::PairTable(std::size_t capacity) : multiplier_(draw_hash_seed()) {
  const int bits = std::max(4, static_cast<int>(std::bit_width(capacity * 2)));  // at most half full
  slots_.assign(std::size_t{1} << bits, kEmpty);
  shift_ = 64 - bits;
  const int filter_bits = bits + 3;
  filter_.assign(std::size_t{1} << (filter_bits - 6), 0);
  filter_shift_ = 64 - filter_bits;
  mask_ = slots_.size() - 1;
}

bool PairTable::insert(TokenId left, TokenId right, std::uint32_t number) {
  if (find(left, right) != kNoMerge) return false;
  const std::uint64_t pair = static_cast<std::uint64_t>(left) << 21 | right;
  const std::uint64_t hash = pair * multiplier_;
  std::size_t i = hash >> shift_;
  while (slots_[i] != kEmpty) i = (i + 1) & mask_;
  slots_[i] = pair << kNumberBits | number;
  const std::uint64_t bit = hash >> filter_shift_;
  filter_[bit / 64] |= std::uint64_t{1} << (bit % 64);
  return true;
}

PieceTable::PieceTable(const TokenBytes& tokens, std::size_t capacity)
    : tokens_(&tokens), seed_(draw_hash_seed()), slots_(std::max<std::size_t>(16, std::bit_ceil(capacity * 2))) {}

const PieceTable::Slot* PieceTable::place_of(std::string_view piece, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  const auto tag = static_cast<std::uint32_t>(hash);
  for (std::size_t i = (hash >> 32) & mask;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.id == kNoToken || (slot.hash == tag && (*tokens_)[slot.id] == piece)) return &slot;
  }
}

TokenId PieceTable::find(std::string_view piece) const {
  if (piece.size() > longest_) return kNoToken;
  return place_of(piece, hash_bytes(piece.data(), piece.size(), seed_))->id;
}

bool PieceTable::insert(TokenId id) {
  const std::string_view piece = (*tokens_)[id];
  const std::uint64_t hash = hash_bytes(piece.data(), piece.size(), seed_);
  const std::size_t at = static_cast<std::size_t>(place_of(piece, hash) - slots_.data());
  if (slots_[at].id != kNoToken) return false;
  slots_[at] = {static_cast<std::uint32_t>(hash), id};
  longest_ = std::max(longest_, piece.size());
  return true;
}

}  // namespace atl
