// Regular expressions of tokenizers, which find what Oniguruma finds in HuggingFace's: by PCRE2 with its just-in-time
// compiler, of the expression in PCRE2's syntax (regex_syntax.h).
//
// PCRE2 is of an older Unicode than the tokenizers: code points that were assigned since then are given to it as others
// of their category (unicode_additions.h), and each byte that is no UTF-8 as U+FFFD, a symbol.
//
// No text can make it hang: where PCRE2 takes more than kMaxSteps at a place, that is an error, and not a place without
// a match, for Oniguruma might find one there, or gives up, too.
//
// An expression never changes once made; any thread, each with a room of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/result.h"

struct pcre2_real_code_8;
struct pcre2_real_match_data_8;
struct pcre2_real_match_context_8;
struct pcre2_real_jit_stack_8;

namespace atl {

struct TextSpan {
  std::size_t begin = 0, end = 0;
};

// Room for PCRE2 to work, kept from text to text. One thread.
class RegexRoom {
 public:
  RegexRoom();
  ~RegexRoom();
  RegexRoom(const RegexRoom&) = delete;

 private:
  friend class Regex;

  pcre2_real_match_data_8* match_;
  pcre2_real_match_context_8* context_;
  pcre2_real_jit_stack_8* stack_;
  std::string text_;                 // what PCRE2 sees where that is not the text itself
  std::vector<std::size_t> places_;  // of each of its bytes the place in the text, and the end
};

class Regex {
 public:
  static constexpr std::size_t kMaxBytes = 16 << 10;  // of an expression
  static constexpr std::uint32_t kMaxSteps = 10'000'000;

  // As a tokenizer.json has it. kInvalidArgument says what is not understood.
  static Result<Regex> make(std::string_view regex);
  // As PCRE2 has it.
  static Result<Regex> make_pcre2(std::string_view regex);

  // All matches from left to right, none within another, as an iterator of Rust's onig has them: an empty one too, but
  // where the one before ends.
  // kInvalidArgument: a search takes too long.
  Status find_all(std::string_view text, RegexRoom& room, std::vector<TextSpan>& found) const;

 private:
  struct Free {
    void operator()(pcre2_real_code_8* code) const;
  };
  explicit Regex(std::shared_ptr<pcre2_real_code_8> code) : code_(std::move(code)) {}

  std::shared_ptr<pcre2_real_code_8> code_;  // shared by copies; never changes
};

}  // namespace atl
