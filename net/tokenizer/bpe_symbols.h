// What a piece of text begins as before its merges, where that is not simply a token a byte: a token for each character
// (Llama 2, Gemma), or for each byte of a vocabulary that lacks some. What has no token is its bytes' tokens
// ("<0x0A>"), where the file says so, else the unknown token, else nothing: as HuggingFace's tokenizers do it. Never
// changes once made; any thread.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "net/tokenizer/bpe_tables.h"

namespace atl {

inline constexpr TokenId kNoByteToken = 0xFFFFFFFF;

// What a file says of it.
struct BpeAlphabet {
  bool of_bytes = true;                  // pieces are bytes, not characters
  std::array<TokenId, 256> byte_ids{};   // of_bytes: the token of each, or kNoByteToken
  std::array<TokenId, 256> fallbacks{};  // the token "<0x..>" of each byte, or kNoByteToken
  bool falls_back = false;
  std::optional<TokenId> unknown;
  bool fuses_unknown = false;  // neighbours are one

  bool has_all_bytes() const;
};

class BpeSymbols {
 public:
  // `characters`: tokens of one character each, where pieces are characters.
  BpeSymbols(const BpeAlphabet& alphabet, const TokenBytes& tokens, const std::vector<TokenId>& characters);

  // Appends the tokens that the piece begins as.
  void append(std::string_view piece, std::vector<TokenId>& ids) const;

 private:
  class Writer;

  const BpeAlphabet alphabet_;
  std::vector<TokenId> by_code_point_;  // as far as there are any
};

}  // namespace atl
