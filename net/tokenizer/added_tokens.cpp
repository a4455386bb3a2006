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
  return words.find_all(character, room, found).ok() && !found.empty();
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
    : tokens_(std::move(tokens)), texts_(found_texts(tokens_)), table_(texts_, tokens_.size()) {
  for (TokenId place = 0; place < tokens_.size(); ++place) {
    const AddedToken& token = tokens_[place];
    if (token.text.empty()) continue;
    table_.insert(place);
    begins_[static_cast<unsigned char>(token.text.front())] = true;
    lengths_.push_back(token.text.size());
    all_special_ = all_special_ && token.special;
  }
  std::sort(lengths_.begin(), lengths_.end(), std::greater<>());
  lengths_.erase(std::unique(lengths_.begin(), lengths_.end()), lengths_.end());
  if (std::count(begins_.begin(), begins_.end(), true) == 1) {
    only_begin_ = static_cast<char>(std::find(begins_.begin(), begins_.end(), true) - begins_.begin());
  }
}

std::optional<AddedTokens::Found> AddedTokens::find(std::string_view text, std::size_t from,
                                                    SpecialText special) const {
  const bool is_text = special == SpecialText::kIsText;
  if (lengths_.empty() || (is_text && all_special_)) return std::nullopt;
  for (std::size_t at = from; at < text.size(); ++at) {
    if (only_begin_) {
      at = text.find(*only_begin_, at);
      if (at == std::string_view::npos) break;
    } else if (!begins_[static_cast<unsigned char>(text[at])]) {
      continue;
    }
    for (const std::size_t length : lengths_) {
      if (length > text.size() - at) continue;
      const TokenId place = table_.find(text.substr(at, length));
      if (place == PieceTable::kNoToken) continue;
      const Found found{at, at + length, &tokens_[place]};
      const bool is_left_out =
          (is_text && found.token->special) || (found.token->single_word && is_within_word(text, found));
      if (!is_left_out) return found;
      at += length - 1;  // within it nothing is looked for
      break;
    }
  }
  return std::nullopt;
}

bool AddedTokens::is_within_word(std::string_view text, const Found& found) {
  const auto [begin, end, token] = found;
  if (begin > 0) {
    const std::size_t bytes = char_before(text, begin).bytes;
    if (is_word(text.substr(begin - bytes, bytes))) return true;
  }
  return end < text.size() && is_word(text.substr(end, char_at(text, end).bytes));
}

std::pair<std::size_t, std::size_t> AddedTokens::widened(std::string_view text, std::size_t from, const Found& found) {
  std::size_t begin = found.begin, end = found.end;
  while (found.token->takes_left && begin > from && is_white_space(char_before(text, begin)))
    begin -= char_before(text, begin).bytes;
  while (found.token->takes_right && end < text.size() && is_white_space(char_at(text, end)))
    end += char_at(text, end).bytes;
  if (found.token->takes_left) begin = std::max(begin, from);
  return {begin, end};
}

}  // namespace atl
