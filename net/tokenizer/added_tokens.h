// Tokens that are found in text before it is cut into pieces: special ones, where they are wanted, and those that a
// tokenizer.json adds to its vocabulary. At each place the longest one counts. Never changes once made; any thread.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/base/result.h"
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

  // Calls on_token(id) and on_text(part, at_begin), a Status, in the order of the text: all of it, but for what a token
  // takes. White space that one took is looked through all the same, as HuggingFace's tokenizers do: a token within it
  // counts, too, and what is behind that is text, but one of which all was taken does not.
  template <class OnToken, class OnText>
  Status for_each_part(std::string_view text, SpecialText special, OnToken on_token, OnText on_text) const {
    std::size_t from = 0;
    for (std::size_t looked = 0; const auto found = find(text, looked, special);) {
      looked = found->end;
      const auto [begin, end] = widened(text, from, *found);
      if (from < begin) ATOLL_RETURN_IF_ERROR(on_text(text.substr(from, begin - from), from == 0));
      if (begin < end) on_token(found->token->id);
      from = end;
    }
    return from < text.size() || text.empty() ? on_text(text.substr(from), from == 0) : ok_status();
  }

 private:
  struct Found {
    std::size_t begin = 0, end = 0;
    const AddedToken* token = nullptr;
  };
  // The first one at or after `from`, as it is written.
  std::optional<Found> find(std::string_view text, std::size_t from, SpecialText special) const;
  static bool is_within_word(std::string_view text, const Found& found);
  // With the white space that it takes, of what is before it none before `from`.
  static std::pair<std::size_t, std::size_t> widened(std::string_view text, std::size_t from, const Found& found);

  const std::vector<AddedToken> tokens_;
  const TokenBytes texts_;
  PieceTable table_;                  // by place in tokens_
  std::array<bool, 256> begins_{};    // first bytes
  std::vector<std::size_t> lengths_;  // longest first
  std::optional<char> only_begin_;    // when all begin alike
  bool all_special_ = true;
};

}  // namespace atl
