#include "net/tokenizer/text_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "net/tokenizer/regex_syntax.h"
#include "net/tokenizer/unicode_punctuation.h"
#include "net/tokenizer/utf8_text.h"

namespace atl {
namespace {

bool is_punctuation(char32_t code) {
  using unicode_data::kPunctuation;
  const auto* const found =
      std::lower_bound(std::begin(kPunctuation), std::end(kPunctuation), code,
                       [](const unicode_data::PunctuationRange& one, char32_t wanted) { return one.last < wanted; });
  return found != std::end(kPunctuation) && found->first <= code;
}

bool is_of(CharKind kind, const TextChar& one) {
  if (kind == CharKind::kPunctuation) return is_punctuation(one.code_point);
  return (class_of(one) & (kind == CharKind::kNumber ? kNumbers : kSpaces)) != 0;
}

struct FindAll {
  std::string_view text;
  RegexRoom& room;
  std::vector<TextSpan>& found;

  Status operator()(CharKind kind) const {
    for_each_char(text, [&](const TextChar& one, std::size_t at) {
      if (is_of(kind, one)) found.push_back({at, at + one.bytes});
    });
    return ok_status();
  }
  Status operator()(SplitPattern pattern) const {
    std::size_t begin = 0;
    for (const std::size_t end : split_ends(pattern, text)) {
      found.push_back({begin, end});
      begin = end;
    }
    return ok_status();
  }
  Status operator()(const Regex& regex) const { return regex.find_all(text, room, found); }
  Status operator()(const std::string& wanted) const {
    for (std::size_t at = text.find(wanted); at != std::string_view::npos; at = text.find(wanted, at + wanted.size())) {
      found.push_back({at, at + wanted.size()});
    }
    return ok_status();
  }
};

}  // namespace

std::optional<SplitPattern> TextPattern::scanner() const {
  const auto* const pattern = std::get_if<SplitPattern>(&what_);
  return pattern == nullptr ? std::nullopt : std::optional(*pattern);
}

Status TextPattern::find_all(std::string_view text, RegexRoom& room, std::vector<TextSpan>& found) const {
  return std::visit(FindAll{text, room, found}, what_);
}

Result<Regex> rust_words() { return Regex::make_pcre2(fmt::format("[{0}]+|[^{0}{1}]+", kRustWordSet, kSpaceSet)); }

}  // namespace atl
