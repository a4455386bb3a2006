#include "net/tokenizer/added_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "net/tokenizer/regex.h"
#include "net/tokenizer/regex_syntax.h"
#include "net/tokenizer/utf8_text.h"

namespace atl {
namespace {

std::vector<std::string> found_texts(const std::vector<AddedToken>& tokens) {
  std::vector<std::string> texts;
  for (const AddedToken& token : tokens) texts.push_back(token.text);
  return texts;
}

bool is_word(std::string_view character) {
  static const Regex words = Regex::make_pcre2(fmt::format("[{}]", kRustWordSet)).value();
  RegexRoom room;
  std::vector<TextSpan> found;
  words.find_all(character, room, found);
  return !found.empty();
}

// The last character before `end` > 0.
TextChar char_before(std::string_view text, std::size_t end) {
  for (std::size_t bytes = 2; bytes <= 4 && bytes <= end; ++bytes) {
    const TextChar found = char_at(text.substr(0, end), end - bytes);
    if (found.code_point != kNoCodePoint && found.bytes == bytes) return found;
  }
  return char_at(text.substr(0, end), end - 1);
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens)
    : tokens_(std::move(tokens)),
      texts_(found_texts(tokens_)),
      all_(texts_, tokens_.size()),
      ordinary_(texts_, tokens_.size()) {
  for (TokenId place = 0; place < tokens_.size(); ++place) {
    if (tokens_[place].text.empty()) continue;
    add(all_, place);
    if (!tokens_[place].special) add(ordinary_, place);
  }
  finish(all_);
  finish(ordinary_);
}

void AddedTokens::add(Kind& kind, TokenId place) const {
  kind.table.insert(place);
  kind.begins[static_cast<unsigned char>(tokens_[place].text.front())] = true;
  kind.lengths.push_back(tokens_[place].text.size());
}

void AddedTokens::finish(Kind& kind) {
  std::sort(kind.lengths.begin(), kind.lengths.end(), std::greater<>());
  kind.lengths.erase(std::unique(kind.lengths.begin(), kind.lengths.end()), kind.lengths.end());
  if (std::count(kind.begins.begin(), kind.begins.end(), true) == 1) {
    kind.only_begin = static_cast<char>(std::find(kind.begins.begin(), kind.begins.end(), true) - kind.begins.begin());
  }
}

std::optional<AddedTokens::Found> AddedTokens::find(std::string_view text, std::size_t from,
                                                    SpecialText special) const {
  const Kind& kind = special == SpecialText::kIsToken ? all_ : ordinary_;
  if (kind.lengths.empty()) return std::nullopt;
  for (std::size_t at = from; at < text.size(); ++at) {
    if (kind.only_begin) {
      at = text.find(*kind.only_begin, at);
      if (at == std::string_view::npos) break;
    } else if (!kind.begins[static_cast<unsigned char>(text[at])]) {
      continue;
    }
    for (const std::size_t length : kind.lengths) {
      if (length > text.size() - at) continue;
      const TokenId place = kind.table.find(text.substr(at, length));
      if (place == PieceTable::kNoToken) continue;
      if (const auto found = widened(text, from, at, tokens_[place])) return found;
      at += length - 1;  // within it nothing is looked for
      break;
    }
  }
  return std::nullopt;
}

std::optional<AddedTokens::Found> AddedTokens::widened(std::string_view text, std::size_t from, std::size_t at,
                                                       const AddedToken& token) const {
  std::size_t begin = at, end = at + token.text.size();
  if (token.single_word) {
    if (begin > 0 && is_word(text.substr(begin - char_before(text, begin).bytes, char_before(text, begin).bytes)))
      return std::nullopt;
    if (end < text.size() && is_word(text.substr(end, char_at(text, end).bytes))) return std::nullopt;
  }
  while (token.takes_left && begin > from && is_white_space(char_before(text, begin)))
    begin -= char_before(text, begin).bytes;
  while (token.takes_right && end < text.size() && is_white_space(char_at(text, end))) end += char_at(text, end).bytes;
  return Found{begin, end - begin, token.id};
}

}  // namespace atl
