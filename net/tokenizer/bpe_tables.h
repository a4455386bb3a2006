// The tables that byte-level BPE is looked up in: what two tokens merge to, and which token a whole piece is. Filled
// once while a file is read, then only read: any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "net/tokenizer/tokenizer.h"

namespace atl {

// Limits on what files of strangers may ask for; the largest vocabularies in use have 2^18 tokens.
inline constexpr std::uint32_t kMaxVocabulary = 1u << 21;
inline constexpr std::uint32_t kMaxMerges = 1u << 21;
inline constexpr std::size_t kMaxTokenBytes = 4096;

// Bytes of each token, one after the other.
class TokenBytes {
 public:
  // `tokens`: by id; an empty one is no token.
  explicit TokenBytes(std::span<const std::string> tokens);

  std::uint32_t size() const { return static_cast<std::uint32_t>(begins_.size() - 1); }
  std::string_view operator[](TokenId id) const {
    return std::string_view(bytes_).substr(begins_[id], begins_[id + 1] - begins_[id]);
  }

 private:
  std::string bytes_;
  std::vector<std::uint32_t> begins_;  // and the last one's end
};

// Two tokens side by side -> the merge that joins them. Merges are numbered by rank: the least number is applied first.
// Open addressing, eight bytes a pair: left, right and number in 21, 21 and 22 bits. Most pairs that are asked
// for are none: of those nearly all are known by a bit for each hash of more bits, which stay in a processor's cache
// where the table does not.
class PairTable {
 public:
  static constexpr std::uint32_t kNoMerge = 0xFFFFFFFF;

  explicit PairTable(std::size_t capacity);  // pairs, at most kMaxMerges

  std::uint32_t find(TokenId left, TokenId right) const {
    const std::uint64_t pair = static_cast<std::uint64_t>(left) << 21 | right;
    const std::uint64_t hash = pair * multiplier_;
    const std::uint64_t bit = hash >> filter_shift_;
    if ((filter_[bit / 64] >> (bit % 64) & 1u) == 0) return kNoMerge;
    for (std::size_t i = hash >> shift_;; i = (i + 1) & mask_) {
      const std::uint64_t slot = slots_[i];
      if (slot >> kNumberBits == pair) return static_cast<std::uint32_t>(slot & kNumberMask);
      if (slot == kEmpty) return kNoMerge;
    }
  }
  bool insert(TokenId left, TokenId right, std::uint32_t number);  // false: it is there

 private:
  static constexpr int kNumberBits = 22;
  static constexpr std::uint64_t kNumberMask = (1u << kNumberBits) - 1;
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};

  std::vector<std::uint64_t> slots_, filter_;
  std::uint64_t multiplier_;
  int shift_, filter_shift_;
  std::size_t mask_;
};

// Bytes -> the token that they are.
class PieceTable {
 public:
  static constexpr TokenId kNoToken = 0xFFFFFFFF;

  // `tokens` outlives this.
  PieceTable(const TokenBytes& tokens, std::size_t capacity);

  TokenId find(std::string_view piece) const;
  bool insert(TokenId id);  // false: these bytes are there already

 private:
  struct Slot {
    std::uint32_t hash = 0;
    TokenId id = kNoToken;
  };
  const Slot* place_of(std::string_view piece, std::uint64_t hash) const;

  const TokenBytes* tokens_;
  std::uint64_t seed_;
  std::vector<Slot> slots_;
  std::size_t longest_ = 0;
};

}  // namespace atl
