// The patterns of split_pattern.h as scanners, for encoders: given where a piece begins, where it ends. Each
// alternative of the regular expression is tried in its order at the first character, and what a greedy repetition
// would give back is computed rather than tried. A piece never depends on what stands before it. Bytes that are no
// UTF-8 are symbols of a byte each.
//
// Runs of ASCII letters, which are most of most texts, are measured sixteen bytes at a time.
//
// Pure functions; any thread.
#pragma once

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <bit>
#include <cstdint>

#include "net/tokenizer/split_pattern.h"
#include "net/tokenizer/unicode_classes.h"

namespace atl {

// Text, and what its characters are.
class SplitScanner {
 public:
  explicit SplitScanner(const std::uint8_t* end) : end_(end), classes_(unicode_classes()) {}

  // Where the piece ends that begins at `at` < end: at least one byte further.
  template <SplitPattern kPattern>
  const std::uint8_t* piece_end(const std::uint8_t* at) const {
    if constexpr (kPattern == SplitPattern::kGpt2) {
      return gpt2(at);
    } else if constexpr (kPattern == SplitPattern::kO200kBase) {
      return o200k(at);
    } else {
      return cl100k<kPattern>(at);
    }
  }

 private:
  struct Classed {
    ClassSet set;  // of one class
    std::uint32_t bytes;
  };
  static constexpr ClassSet set_of(unsigned word) { return static_cast<ClassSet>(1u << (word & kClassBits)); }
  Classed look(const std::uint8_t* at) const {
    if (*at < 0x80) [[likely]]
      return {set_of(classes_[*at]), 1};
    const TextChar found = decode_char(at, end_);
    return {found.code_point == kNoCodePoint ? class_set(CharClass::kOther) : set_of(classes_[found.code_point]),
            found.bytes};
  }
  bool is_in(const std::uint8_t* at, ClassSet wanted) const { return at < end_ && (look(at).set & wanted) != 0; }

  const std::uint8_t* skip(const std::uint8_t* at, ClassSet wanted) const {
    while (at < end_) {
      const Classed found = look(at);
      if ((found.set & wanted) == 0) break;
      at += found.bytes;
    }
    return at;
  }
  // At most so many characters.
  const std::uint8_t* skip_up_to(const std::uint8_t* at, ClassSet wanted, int most) const {
    for (; most > 0 && at < end_; --most) {
      const Classed found = look(at);
      if ((found.set & wanted) == 0) break;
      at += found.bytes;
    }
    return at;
  }

  // Which of the sixteen bytes at `at` are ASCII letters of any case (kAnyCase), or of the case of `first`, as bits.
#ifdef __SSE2__
  template <bool kAnyCase>
  static unsigned letter_bits(const std::uint8_t* at, char first) {
    __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    if constexpr (kAnyCase) bytes = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
    // Signed comparison: 'a' becomes -128, so that what is below -128 + 26 is a letter.
    const __m128i moved = _mm_sub_epi8(bytes, _mm_set1_epi8(static_cast<char>(first + 128)));
    return static_cast<unsigned>(_mm_movemask_epi8(_mm_cmplt_epi8(moved, _mm_set1_epi8(-128 + 26))));
  }
  static constexpr std::ptrdiff_t kStride = 16;
#else
  template <bool kAnyCase>
  static unsigned letter_bits(const std::uint8_t* at, char first) {
    const auto letter = static_cast<std::uint8_t>(kAnyCase ? *at | 0x20u : *at);
    return static_cast<std::uint8_t>(letter - static_cast<std::uint8_t>(first)) < 26 ? 1 : 0;
  }
  static constexpr std::ptrdiff_t kStride = 1;
#endif
  template <bool kAnyCase>
  const std::uint8_t* skip_ascii(const std::uint8_t* at, char first) const {
    while (end_ - at >= kStride) {
      const int run = std::countr_one(letter_bits<kAnyCase>(at, first));
      at += run;
      if (run < kStride) return at;
    }
    while (at < end_ &&
           static_cast<std::uint8_t>((kAnyCase ? *at | 0x20u : *at) - static_cast<std::uint8_t>(first)) < 26)
      ++at;
    return at;
  }
  // \p{L}*
  const std::uint8_t* skip_letters(const std::uint8_t* at) const {
    at = skip_ascii<true>(at, 'a');
    return at < end_ && *at >= 0x80 ? skip(at, kLetters) : at;
  }

  // How long 's, 't, 're, 've, 'm, 'll or 'd is that begins with the apostrophe at `at`; 0: none. kAnyCase: as
  // (?i:...), where Unicode's folding also makes an s of the long s, U+017F.
  template <bool kAnyCase>
  int contraction(const std::uint8_t* at) const {
    const std::ptrdiff_t left = end_ - at;
    if (left < 2 || *at != '\'') return 0;
    const auto letter = [&](int i) { return kAnyCase ? at[i] | 0x20u : at[i]; };
    const unsigned first = letter(1);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
    if (left < 3) return 0;
    if (kAnyCase && at[1] == 0xC5 && at[2] == 0xBF) return 3;
    const unsigned second = letter(2);
    if ((first == 'l' && second == 'l') || (second == 'e' && (first == 'v' || first == 'r'))) return 3;
    return 0;
  }

  // White space from `at` on: \s*[\r\n]+|\s+(?!\S)|\s+, without its first alternative where lines mean nothing; at the
  // end of the text all of it is one piece where `whole_at_end` (\s++$ before the others).
  const std::uint8_t* white_space(const std::uint8_t* at, bool lines, bool whole_at_end) const {
    const std::uint8_t* after_line = nullptr;
    const std::uint8_t* last = at;
    const std::uint8_t* to = at;
    while (to < end_) {
      const Classed found = look(to);
      if ((found.set & kSpaces) == 0) break;
      last = to;
      to += found.bytes;
      if ((found.set & kNewlines) != 0) after_line = to;
    }
    if (to == end_ && (whole_at_end || after_line == nullptr || !lines)) return to;
    if (lines && after_line != nullptr) return after_line;
    return last == at ? to : last;  // one is left for what follows, unless there is only one
  }

  //  ?[^\s\p{L}\p{N}]+, where `found` is the character at `at`; nullptr: none.
  const std::uint8_t* symbols(const std::uint8_t* at, Classed found) const {
    const std::uint8_t* const begin = *at == ' ' ? at + 1 : at;
    if (*at == ' ' ? !is_in(begin, kSymbols) : (found.set & kSymbols) == 0) return nullptr;
    return skip(begin, kSymbols);
  }

  // '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  const std::uint8_t* gpt2(const std::uint8_t* at) const {
    if (const int length = contraction<false>(at)) return at + length;
    const std::uint8_t* const begin = *at == ' ' && end_ - at > 1 ? at + 1 : at;
    const ClassSet first = look(begin).set;
    if ((first & kLetters) != 0) return skip_letters(begin);
    if ((first & kNumbers) != 0) return skip(begin, kNumbers);
    if ((first & kSymbols) != 0) return skip(begin, kSymbols);
    return white_space(at, false, true);
  }

  // (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
  // cl100k_base takes white space at the end of the text as one (\s++$), Qwen numbers one by one.
  template <SplitPattern kPattern>
  const std::uint8_t* cl100k(const std::uint8_t* at) const {
    const Classed found = look(at);
    if ((found.set & kLetters) != 0) return skip_letters(at);
    if ((found.set & kNumbers) != 0) return skip_up_to(at, kNumbers, kPattern == SplitPattern::kQwen2 ? 1 : 3);
    if ((found.set & kNewlines) == 0) {
      if (const int length = contraction<true>(at)) return at + length;
      const std::uint8_t* const next = at + found.bytes;
      if (is_in(next, kLetters)) return skip_letters(next);
      if (const std::uint8_t* const to = symbols(at, found)) return skip(to, kNewlines);
    }
    return white_space(at, true, kPattern == SplitPattern::kCl100kBase);
  }

  // [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
  // |[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
  // |\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
  const std::uint8_t* o200k(const std::uint8_t* at) const {
    const Classed found = look(at);
    if ((found.set & kNumbers) != 0) return skip_up_to(at, kNumbers, 3);
    if ((found.set & kNewlines) == 0) {
      const std::uint8_t* const word = (found.set & kLetters) != 0 ? at : at + found.bytes;
      const std::uint8_t* to = small_word(word);
      // A mark is what may stand before a word as well as what a word is made of.
      if (to == nullptr && (found.set & class_set(CharClass::kMark)) != 0) to = small_word(at);
      if (to == nullptr) to = capitals(word);
      if (to != nullptr) return to + contraction<true>(to);
      if (const std::uint8_t* const after = symbols(at, found)) return skip_lines_and_slashes(after);
    }
    return white_space(at, true, false);
  }
  static constexpr ClassSet kCaseless = class_set(CharClass::kOtherLetter) | class_set(CharClass::kMark);
  static constexpr ClassSet kCapital = class_set(CharClass::kUpper) | kCaseless;  // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
  static constexpr ClassSet kSmall = class_set(CharClass::kLower) | kCaseless;    // [\p{Ll}\p{Lm}\p{Lo}\p{M}]
  // kCapital*kSmall+: where it ends, or nullptr.
  const std::uint8_t* small_word(const std::uint8_t* at) const {
    const std::uint8_t* const after_capitals = skip_ascii<false>(at, 'A');
    const std::uint8_t* const after_small = skip_ascii<false>(after_capitals, 'a');
    const bool is_ascii = after_small == end_ || *after_small < 0x80;
    if (is_ascii) return after_small == after_capitals ? nullptr : after_small;
    if (after_small != after_capitals) return skip(after_small, kSmall);
    // The run of capitals gives back characters up to its last one that may also be small.
    const std::uint8_t* after_caseless = nullptr;
    const std::uint8_t* to = after_capitals;
    while (to < end_) {
      const Classed found = look(to);
      if ((found.set & kCapital) == 0) break;
      to += found.bytes;
      if ((found.set & kCaseless) != 0) after_caseless = to;
    }
    return is_in(to, kSmall) ? skip(to, kSmall) : after_caseless;
  }
  // kCapital+, where no kSmall+ follows; nullptr: none.
  const std::uint8_t* capitals(const std::uint8_t* at) const {
    const std::uint8_t* const to = skip(at, kCapital);
    return to == at ? nullptr : to;
  }
  const std::uint8_t* skip_lines_and_slashes(const std::uint8_t* at) const {
    while (at < end_ && (*at == '\r' || *at == '\n' || *at == '/')) ++at;
    return at;
  }

  const std::uint8_t* end_;
  const std::uint8_t* classes_;
};

}  // namespace atl
