// Tokens that are found in text before it is cut into pieces: special ones, where they are wanted, and those that a
// tokenizer.json adds to its vocabulary. At each place the longest one counts. Never changes once made; any thread.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/tokenizer/bpe_tables.h"

namespace atl {

struct AddedToken {
  std::string text;
  TokenId id = 0;
  bool special = false;      // only where special tokens are wanted
  bool normalized = false;   // found in text that the normalizer went over before, as it makes of `text`
  bool single_word = false;  // not where a word goes on before or behind it
  bool takes_left = false, takes_right = false;  // white space beside it is a part of it
};

class AddedTokens {
 public:
  static constexpr std::size_t kMaxTokens = 1u << 16;
  static constexpr std::size_t kMaxBytes = 256;

  // Those with an empty text are never found; of those with the same the first.
  explicit AddedTokens(std::vector<AddedToken> tokens);
  AddedTokens(const AddedTokens&) = delete;

  struct Found {
    std::size_t at = 0, bytes = 0;
    TokenId id = 0;
  };
  // The first one at or after `from`.
  std::optional<Found> find(std::string_view text, std::size_t from, SpecialText special) const;

 private:
  struct Kind {
    Kind(const TokenBytes& bytes, std::size_t capacity) : table(bytes, capacity) {}
    PieceTable table;                  // by place in tokens_
    std::array<bool, 256> begins{};    // first bytes
    std::vector<std::size_t> lengths;  // longest first
    std::optional<char> only_begin;    // when all begin alike
  };
  void add(Kind& kind, TokenId place) const;
  static void finish(Kind& kind);
  // Empty: it is within a word.
  std::optional<Found> widened(std::string_view text, std::size_t from, std::size_t at, const AddedToken& token) const;

  const std::vector<AddedToken> tokens_;
  const TokenBytes texts_;
  Kind all_, ordinary_;
};

}  // namespace atl
