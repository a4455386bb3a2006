#include "net/tokenizer/normal_form.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <unordered_map>
#include <vector>

#include "net/tokenizer/unicode_classes.h"
#include "net/tokenizer/unicode_compositions.h"
#include "net/tokenizer/utf8_text.h"

namespace atl {
namespace {

using unicode_data::Compatible;
using unicode_data::Decomposition;
using unicode_data::kCombiningClasses;
using unicode_data::kCompatible;
using unicode_data::kCompatibleCodes;
using unicode_data::kDecompositions;
using unicode_data::kKeptApart;

// Hangul syllables are made of a leading consonant, a vowel and perhaps a trailing consonant by arithmetic (The Unicode
// Standard, 3.12).
constexpr char32_t kSyllables = 0xAC00, kLeading = 0x1100, kVowels = 0x1161, kTrailing = 0x11A7;
constexpr char32_t kLeadingCount = 19, kVowelCount = 21, kTrailingCount = 28;
constexpr char32_t kSyllableCount = kLeadingCount * kVowelCount * kTrailingCount;

unsigned combining_class(char32_t code) {
  const auto* const after = std::upper_bound(std::begin(kCombiningClasses), std::end(kCombiningClasses),
                                             static_cast<std::uint32_t>(code) << 8 | 0xFF);
  return after == std::begin(kCombiningClasses) ? 0 : *(after - 1) & 0xFFu;
}

void decompose(char32_t code, std::vector<char32_t>& out) {
  if (code >= kSyllables && code < kSyllables + kSyllableCount) {
    const char32_t index = code - kSyllables;
    out.push_back(kLeading + index / (kVowelCount * kTrailingCount));
    out.push_back(kVowels + index % (kVowelCount * kTrailingCount) / kTrailingCount);
    if (index % kTrailingCount != 0) out.push_back(kTrailing + index % kTrailingCount);
    return;
  }
  const auto* const found =
      std::lower_bound(std::begin(kDecompositions), std::end(kDecompositions), code,
                       [](const Decomposition& one, char32_t wanted) { return one.code < wanted; });
  if (found == std::end(kDecompositions) || found->code != code) return out.push_back(code);
  decompose(found->first & ~kKeptApart, out);  // the second part is never made of others
  if (found->second != 0) out.push_back(found->second);
}

// What the forms KC and KD have in its place; empty: it stays.
std::span<const std::uint32_t> compatible_with(char32_t code) {
  const auto* const found = std::lower_bound(std::begin(kCompatible), std::end(kCompatible), code,
                                             [](const Compatible& one, char32_t wanted) { return one.code < wanted; });
  if (found == std::end(kCompatible) || found->code != code) return {};
  return std::span(kCompatibleCodes).subspan(found->begin, found->count);
}

std::unordered_map<std::uint64_t, char32_t> make_compositions() {
  std::unordered_map<std::uint64_t, char32_t> composed;
  for (const Decomposition& one : kDecompositions) {
    if ((one.first & kKeptApart) == 0) composed[static_cast<std::uint64_t>(one.first) << 32 | one.second] = one.code;
  }
  return composed;
}

// 0: they stay two.
char32_t compose(char32_t first, char32_t second) {
  if (first >= kLeading && first < kLeading + kLeadingCount && second >= kVowels && second < kVowels + kVowelCount) {
    return kSyllables + ((first - kLeading) * kVowelCount + (second - kVowels)) * kTrailingCount;
  }
  if (first >= kSyllables && first < kSyllables + kSyllableCount && (first - kSyllables) % kTrailingCount == 0 &&
      second > kTrailing && second < kTrailing + kTrailingCount) {
    return first + (second - kTrailing);
  }
  static const auto compositions = make_compositions();
  const auto found = compositions.find(static_cast<std::uint64_t>(first) << 32 | second);
  return found == compositions.end() ? 0 : found->second;
}

// A stretch of text, decomposed, in which nothing is joined to what stands before or after: put in order and composed.
class Stretch {
 public:
  explicit Stretch(NormalForm form) : form_(form) {}

  void add(char32_t code) {
    const auto parts = is_compatible() ? compatible_with(code) : std::span<const std::uint32_t>();
    if (parts.empty()) return decompose(code, codes_);
    codes_.insert(codes_.end(), parts.begin(), parts.end());
  }
  // It is joined to nothing before it.
  bool is_apart(char32_t code) const {
    if (code == kNoCodePoint || code < 0x80) return true;
    return (unicode_classes()[code] & kNfcUnsafe) == 0 && (!is_compatible() || compatible_with(code).empty());
  }

  void write(std::string& text) {
    sort_marks();
    if (form_ == NormalForm::kC || form_ == NormalForm::kKc) compose_marks();
    for (const char32_t code : codes_) append_utf8(code, text);
    codes_.clear();
  }

 private:
  void sort_marks() {
    for (auto at = codes_.begin(); at != codes_.end();) {
      at = std::find_if(at, codes_.end(), [](char32_t code) { return combining_class(code) != 0; });
      const auto end = std::find_if(at, codes_.end(), [](char32_t code) { return combining_class(code) == 0; });
      std::stable_sort(at, end, [](char32_t a, char32_t b) { return combining_class(a) < combining_class(b); });
      at = end;
    }
  }
  // Each is joined to the last starter, unless one between them that stays has its class or a higher one (is
  // "blocked").
  void compose_marks() {
    std::size_t kept = 0, starter = 0;
    bool has_starter = false;
    unsigned last_class = 0;
    for (const char32_t code : codes_) {
      const unsigned own_class = combining_class(code);
      const bool is_next = has_starter && kept == starter + 1;
      if (has_starter && (is_next || last_class < own_class)) {
        if (const char32_t both = compose(codes_[starter], code)) {
          codes_[starter] = both;
          continue;
        }
      }
      if (own_class == 0) {
        starter = kept;
        has_starter = true;
      }
      last_class = own_class;
      codes_[kept++] = code;
    }
    codes_.resize(kept);
  }

  bool is_compatible() const { return form_ == NormalForm::kKc || form_ == NormalForm::kKd; }

  const NormalForm form_;
  std::vector<char32_t> codes_;
};

bool is_unsafe(const TextChar& found) {
  return found.code_point != kNoCodePoint && (unicode_classes()[found.code_point] & kNfcUnsafe) != 0;
}

}  // namespace

bool is_surely_normal(std::string_view text) {
  const auto* at = reinterpret_cast<const std::uint8_t*>(text.data());
  for (const std::uint8_t* const end = at + text.size(); at < end;) {
    const TextChar found = decode_char(at, end);
    if (is_unsafe(found)) return false;
    at += found.bytes;
  }
  return true;
}

std::string to_normal_form_c(std::string_view text) { return to_normal_form(text, NormalForm::kC); }

std::string to_normal_form(std::string_view text, NormalForm form) {
  std::string normal;
  normal.reserve(text.size() + text.size() / 4);
  Stretch stretch(form);
  const auto* at = reinterpret_cast<const std::uint8_t*>(text.data());
  for (const std::uint8_t* const end = at + text.size(); at < end;) {
    const TextChar found = decode_char(at, end);
    if (stretch.is_apart(found.code_point)) stretch.write(normal);
    if (found.code_point == kNoCodePoint) {
      normal += static_cast<char>(*at);
    } else {
      stretch.add(found.code_point);
    }
    at += found.bytes;
  }
  stretch.write(normal);
  return normal;
}

}  // namespace atl
