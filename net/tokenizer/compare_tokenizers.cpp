#include "net/tokenizer/compare_tokenizers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

#include "net/base/printable.h"

namespace atl {
namespace {

constexpr std::size_t kShownText = 48;   // bytes of a text
constexpr std::size_t kShownTokens = 8;  // of a text's
// What SentencePiece makes of its token for what it does not know; HuggingFace's files have it among the special ones.
constexpr std::string_view kUnknown = " \xE2\x81\x87 ";

// What patterns and normal forms differ in: contractions, numbers, white space, signs, scripts, letters with marks.
constexpr std::array<std::string_view, 14> kTexts = {
    "I'm sure you'LL say it ISN'T; we've he'd 'tis rock'n'roll",
    "1 12 123 1234 12345 1234567 3.14159 1,000,000 v2.0 x86_64 \xD9\xA1\xD9\xA2\xD9\xA3\xD9\xA4 \xC2\xBD \xE2\x85\xA7",
    "a  b   c    d\te\t\tf \n g\n\nh\n\n\n  i\r\n\r\nj \r k  \n",
    "   begins and ends   ",
    "!!! ... ?! ---- (a) [b] {c} <d> \"e\" 'f' #g @h $5 %6 ^7 &8 *9 +0 =1 ~2 `3` \\ | / // /* */ ::",
    "end.\nNext; \n\"quoted\"\n - list\n/path/to/file.txt\nhttps://example.org/?q=1&r=2",
    "HelloWorld iPhone XMLHttpRequest snake_case SCREAMING_CASE camelCaseX fooBAR",
    "na\xC3\xAFve caf\xC3\xA9 cafe\xCC\x81 \xC3\x85ngstr\xC3\xB6m A\xCC\x8Angstro\xCC\x88m \xEF\xAC\x81ne \xEF\xBC\xA1 "
    "\xE2\x91\xA0",
    "\xE4\xB8\xAD\xE6\x96\x87\xE5\x88\x86\xE8\xAF\x8D\xEF\xBC\x8C\xE6\xB5\x8B\xE8\xAF\x95\xE3\x80\x82\xE6\x97\xA5\xE6"
    "\x9C\xAC\xE8\xAA\x9E\xE3\x81\xAE\xE3\x83\x86\xE3\x82\xB9\xE3\x83\x88",
    "\xD0\x9F\xD1\x80\xD0\xB8\xD0\xB2\xD0\xB5\xD1\x82, \xD0\xBC\xD0\xB8\xD1\x80! \xCE\x93\xCE\xB5\xCE\xB9\xCE\xAC "
    "\xED\x95\x9C\xEA\xB5\xAD\xEC\x96\xB4",
    "\xD8\xA7\xD9\x84\xD8\xB3\xD9\x84\xD8\xA7\xD9\x85 "
    "\xE0\xA4\xA8\xE0\xA4\xAE\xE0\xA4\xB8\xE0\xA5\x8D\xE0\xA4\xA4\xE0\xA5\x87 "
    "\xE0\xB8\xAA\xE0\xB8\xA7\xE0\xB8\xB1\xE0\xB8\xAA",
    "\xF0\x9F\x98\x80\xF0\x9F\x91\x8D\xF0\x9F\x8F\xBD \xE2\x80\x94 \xE2\x80\x9C"
    "a\xE2\x80\x9D \xE2\x82\xAC"
    "5 \xC2\xA0 \xE3\x80\x80 \xE2\x80\x8B",
    "for (int i = 0; i < n; ++i) {\n    x[i] += 0x1F;  // \xC2\xB5s\n}\n",
    "The quick brown fox jumps over the lazy dog. THE QUICK BROWN FOX, the lazy dog's.",
};

// Names of numbers that were kept free for what may come.
bool is_free(std::string_view name) {
  constexpr std::array<std::string_view, 6> kWords = {"reserved", "unused", "placeholder", "dummy", "extra", "<pad"};
  return std::ranges::any_of(kWords, [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

std::string shown(std::string_view text) {
  return text.empty() ? "no token" : fmt::format("'{}'", printable(text, kShownText));
}

std::string shown(const std::vector<TokenId>& ids) {
  const std::size_t count = std::min(ids.size(), kShownTokens);
  return fmt::format("{}{}", fmt::join(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count), " "),
                     count < ids.size() ? " ..." : "");
}

class Comparison {
 public:
  Comparison(const NamedTokenizer& one, const NamedTokenizer& other)
      : one_(one), other_(other), room_(one.tokenizer.make_scratch()), other_room_(other.tokenizer.make_scratch()) {}

  TokenizerComparison make() {
    const auto size = std::max(one_.tokenizer.facts().vocab_size, other_.tokenizer.facts().vocab_size);
    compare_special_names();
    for (TokenId id = 0; id < size && found_.difference.empty(); ++id) compare_token(id);
    if (found_.difference.empty()) compare_merges();
    for (const std::string_view text : kTexts) compare_text(std::string(text));
    // Each beside two others: the next one, and one that is far from it.
    for (std::size_t i = 0; i < texts_.size() && found_.difference.empty(); ++i) {
      compare_text(texts_[i]);
      compare_text(texts_[i] + texts_[(i + 1) % texts_.size()]);
      compare_text(texts_[i] + texts_[(i * 7919 + 1) % texts_.size()]);
    }
    return std::move(found_);
  }

 private:
  void differ(std::string how) {
    if (found_.difference.empty()) found_.difference = std::move(how);
  }
  void differ(TokenId id, std::string_view one, std::string_view other) {
    differ(fmt::format("token {} is {} in {} and {} in {}", id, shown(one), one_.name, shown(other), other_.name));
  }

  // One name, two numbers.
  void compare_special_names() {
    std::unordered_map<std::string_view, TokenId> ids;
    for (const SpecialToken& token : one_.tokenizer.facts().special_tokens) {
      names_[token.id].first = token.name;
      ids.emplace(token.name, token.id);
    }
    for (const SpecialToken& token : other_.tokenizer.facts().special_tokens) {
      names_[token.id].second = token.name;
      const auto found = ids.find(token.name);
      if (found == ids.end() || found->second == token.id || is_free(token.name)) continue;
      differ(fmt::format("{} is token {} in {} and {} in {}", shown(token.name), found->second, one_.name, token.id,
                         other_.name));
    }
  }

  void compare_token(TokenId id) {
    const auto special = names_.find(id);
    if (special != names_.end()) return compare_special(id, special->second.first, special->second.second);
    std::string one = one_.tokenizer.within_text(id);
    const std::string other = other_.tokenizer.within_text(id);
    if (one != other) return differ(id, one, other);
    if (!one.empty()) texts_.push_back(std::move(one));
  }

  void compare_special(TokenId id, const std::string& one, const std::string& other) {
    if (one == other) return;
    if (!one.empty() && !other.empty()) {
      if (!is_free(one) && !is_free(other)) return differ(id, one, other);
      if (!is_free(one)) found_.only_in_one.push_back(one);
      if (!is_free(other)) found_.only_in_other.push_back(other);
      return;
    }
    // Special in one of them: text in the other one, or nothing.
    const bool in_one = !one.empty();
    const std::string& name = in_one ? one : other;
    const std::string text = (in_one ? other_ : one_).tokenizer.within_text(id);
    if (text == name || text == kUnknown) return;
    if (!text.empty()) return in_one ? differ(id, one, text) : differ(id, text, other);
    if (!is_free(name)) (in_one ? found_.only_in_one : found_.only_in_other).push_back(name);
  }

  // Of those that both make: a file may list several ways to one token, and ways that no text takes.
  void compare_merges() {
    std::vector<TokenId> one = one_.tokenizer.merge_order(), other = other_.tokenizer.merge_order();
    if (one.empty() || other.empty()) return;
    const auto keep = [](std::vector<TokenId>& list, std::vector<TokenId> of) {
      std::ranges::sort(of);
      std::erase_if(list, [&](TokenId id) { return !std::ranges::binary_search(of, id); });
    };
    const std::vector<TokenId> all = one;
    keep(one, other);
    keep(other, all);
    const auto at = std::ranges::mismatch(one, other);
    if (at.in1 == one.end() || at.in2 == other.end()) return;
    differ(fmt::format("where {} would make token {} ({}), {} makes token {} ({}): their merges stand in another order",
                       one_.name, *at.in1, shown(one_.tokenizer.within_text(*at.in1)), other_.name, *at.in2,
                       shown(other_.tokenizer.within_text(*at.in2))));
  }

  void compare_text(const std::string& text) {
    if (!found_.difference.empty()) return;
    ids_.clear();
    other_ids_.clear();
    const Status by_one = one_.tokenizer.encode(text, SpecialText::kIsText, *room_, ids_);
    const Status by_other = other_.tokenizer.encode(text, SpecialText::kIsText, *other_room_, other_ids_);
    if (!by_one.ok() && !by_other.ok()) return;  // neither makes tokens of it
    if (!by_one.ok() || !by_other.ok()) {
      return differ(fmt::format("of {} {} makes no tokens: {}", shown(text), by_one.ok() ? other_.name : one_.name,
                                (by_one.ok() ? by_other : by_one).error().message));
    }
    if (ids_ == other_ids_) return;
    differ(fmt::format("{} is cut into {} by {} and into {} by {}", shown(text), shown(ids_), one_.name,
                       shown(other_ids_), other_.name));
  }

  const NamedTokenizer one_, other_;
  const std::unique_ptr<TokenizerScratch> room_, other_room_;
  std::map<TokenId, std::pair<std::string, std::string>> names_;  // of special tokens, in either
  std::vector<std::string> texts_;                                // of the tokens that both have
  std::vector<TokenId> ids_, other_ids_;
  TokenizerComparison found_;
};

}  // namespace

TokenizerComparison compare_tokenizers(const NamedTokenizer& one, const NamedTokenizer& other) {
  // Of bytes, which have no file, it is empty.
  if (one.tokenizer.facts().sha256 == other.tokenizer.facts().sha256) return {};
  return Comparison(one, other).make();
}

}  // namespace atl
