// What a Split or a Replace of a tokenizer.json looks for: a string, a regular expression, one of the patterns that
// have a scanner of their own (split_pattern.h), or characters of a kind. Never changes once made; any thread, each
// with a room of its own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "net/tokenizer/regex.h"
#include "net/tokenizer/split_pattern.h"

namespace atl {

// One character each.
enum class CharKind {
  kNumber,       // \p{N}
  kSpace,        // \s
  kPunctuation,  // as tokenizers' Punctuation and BertPreTokenizer have it: ASCII's signs, \p{P} of an older Unicode
};

class TextPattern {
 public:
  explicit TextPattern(CharKind kind) : what_(kind) {}
  explicit TextPattern(SplitPattern pattern) : what_(pattern) {}
  explicit TextPattern(Regex regex) : what_(std::move(regex)) {}
  static TextPattern of_text(std::string text) { return TextPattern(std::move(text)); }  // not empty

  std::optional<SplitPattern> scanner() const;  // whose pattern it is

  // All matches from left to right. kInvalidArgument: a search takes too long.
  Status find_all(std::string_view text, RegexRoom& room, std::vector<TextSpan>& found) const;

 private:
  explicit TextPattern(std::string text) : what_(std::move(text)) {}

  std::variant<CharKind, SplitPattern, Regex, std::string> what_;
};

// Words and what stands between them, without white space, as the pre-tokenizer Whitespace has them (of Rust's regex
// crate, whose \w differs from Oniguruma's).
Result<Regex> rust_words();

}  // namespace atl
