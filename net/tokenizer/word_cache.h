// What a thread remembers of pieces that it has encoded: texts repeat their words. Two tables, both exact (a key is
// compared in full) and of fixed size (what is new takes the place of what is old):
//
// - short pieces: up to 15 bytes that are up to three tokens, 32 bytes an entry, two entries to a cache line, which is
// all of
//   memory that such a word costs;
// - the others up to 255 bytes, whose bytes and tokens stand in one buffer that is emptied when it is full.
//
// Owned by a scratch of BpeTokenizer; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "net/tokenizer/piece_hash.h"
#include "net/tokenizer/tokenizer.h"

namespace atl {

// A piece of up to 15 bytes and its length, in sixteen.
struct ShortPiece {
  static constexpr std::size_t kMaxBytes = 15;

  std::uint64_t low = 0, high = 0;  // the length is the highest byte, so that no piece is all zeros

  // Of `size` <= kMaxBytes bytes at `at`; sixteen may be read when they lie before `end`.
  static ShortPiece of(const std::uint8_t* at, std::size_t size, const std::uint8_t* end) {
    std::uint64_t words[2] = {0, 0};
    if (end - at >= 16) [[likely]] {
      std::memcpy(words, at, 16);
    } else {
      std::memcpy(words, at, size);
    }
    return {words[0] & kMasks[size][0], (words[1] & kMasks[size][1]) | static_cast<std::uint64_t>(size) << 56};
  }

 private:
  using Masks = std::array<std::array<std::uint64_t, 2>, 16>;
  static constexpr Masks kMasks = [] {
    Masks masks{};
    for (std::size_t size = 0; size <= kMaxBytes; ++size) {
      for (std::size_t i = 0; i < size; ++i) masks[size][i / 8] |= std::uint64_t{0xFF} << (i % 8 * 8);
    }
    return masks;
  }();
};

class ShortWordCache {
 public:
  static constexpr std::size_t kMaxTokens = 3;
  struct alignas(32) Entry {
    ShortPiece piece;
    std::array<TokenId, kMaxTokens> tokens;
    std::uint32_t count = 0;
  };

  ShortWordCache() : seed_(draw_hash_seed()), sets_(new Set[kSets]{}) {}

  std::uint32_t set_of(const ShortPiece& piece) const {
    return static_cast<std::uint32_t>(hash_words(piece.low, piece.high, seed_)) & (kSets - 1);
  }
  void prefetch(std::uint32_t set) const { __builtin_prefetch(&sets_[set]); }
  const Entry* find(const ShortPiece& piece, std::uint32_t set) const {
    for (const Entry& entry : sets_[set].entries) {
      if (((entry.piece.low ^ piece.low) | (entry.piece.high ^ piece.high)) == 0) return &entry;
    }
    return nullptr;
  }
  void keep(const ShortPiece& piece, std::uint32_t set, std::span<const TokenId> tokens) {
    auto& entries = sets_[set].entries;
    entries[1] = entries[0];
    entries[0].piece = piece;
    std::copy(tokens.begin(), tokens.end(), entries[0].tokens.begin());
    entries[0].count = static_cast<std::uint32_t>(tokens.size());
  }

 private:
  static constexpr std::uint32_t kSets = 1u << 16;  // 4 MiB
  struct alignas(64) Set {
    std::array<Entry, 2> entries;
  };

  std::uint64_t seed_;
  std::unique_ptr<Set[]> sets_;
};

class LongWordCache {
 public:
  static constexpr std::size_t kMaxBytes = 255;

  LongWordCache() : seed_(draw_hash_seed()), entries_(kEntries) { buffer_.reserve(kBufferBytes); }

  std::uint64_t hash_of(std::string_view piece) const { return hash_bytes(piece.data(), piece.size(), seed_); }
  // Appends the tokens, if it is there.
  bool find(std::string_view piece, std::uint64_t hash, std::vector<TokenId>& ids) const {
    const Entry& entry = entries_[hash & (kEntries - 1)];
    if (entry.hash != hash || entry.bytes != piece.size()) return false;
    const char* const kept = buffer_.data() + entry.at;
    if (std::memcmp(kept, piece.data(), piece.size()) != 0) return false;
    if (entry.count == 0) return true;  // a piece without tokens
    const std::size_t had = ids.size();
    ids.resize(had + entry.count);
    std::memcpy(ids.data() + had, kept + entry.bytes, entry.count * sizeof(TokenId));
    return true;
  }
  void keep(std::string_view piece, std::uint64_t hash, std::span<const TokenId> tokens) {
    if (buffer_.size() + piece.size() + tokens.size_bytes() > kBufferBytes) {
      buffer_.clear();
      std::fill(entries_.begin(), entries_.end(), Entry{});
    }
    entries_[hash & (kEntries - 1)] = {hash, static_cast<std::uint32_t>(buffer_.size()),
                                       static_cast<std::uint16_t>(piece.size()),
                                       static_cast<std::uint16_t>(tokens.size())};
    buffer_.append(piece);
    if (!tokens.empty()) buffer_.append(reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes());
  }

 private:
  static constexpr std::size_t kEntries = std::size_t{1} << 16;
  static constexpr std::size_t kBufferBytes = std::size_t{4} << 20;
  struct Entry {
    std::uint64_t hash = 0;
    std::uint32_t at = 0;
    std::uint16_t bytes = 0, count = 0;  // bytes 0: none
  };

  std::uint64_t seed_;
  std::vector<Entry> entries_;
  std::string buffer_;
};

}  // namespace atl
