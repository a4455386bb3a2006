// What the patterns of tokenizers ask of a character: is it a letter, and which, a mark, a number, space, the end of a
// line? One byte for each code point, in a table of 1.1 MB that is filled at first use from the 13 KB of
// unicode_ranges.h: one load, of which a script touches some hundred bytes.
//
// The version is Unicode's 16.0, as that of the regular expressions of tiktoken 0.14 (Rust's regex-syntax) and of
// HuggingFace's tokenizers 0.23 (Oniguruma), which cut texts of all code points alike. Versions differ in code points
// that were assigned between them: with engines of another one, texts in scripts and with signs of the last years may
// be cut otherwise.
//
// Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace atl {

// What a character is to a pattern. Those of \p{L} are in a row.
enum class CharClass : std::uint8_t {
  kOther = 0,        // punctuation, signs, controls, what is unassigned, bytes that are no UTF-8
  kUpper = 1,        // \p{Lu} \p{Lt}
  kLower = 2,        // \p{Ll}
  kOtherLetter = 3,  // \p{Lm} \p{Lo}
  kMark = 4,         // \p{M}
  kNumber = 5,       // \p{N}
  kSpace = 6,        // \s (White_Space), but for the two below
  kNewline = 7,      // \r \n
};

// Sets of classes, as bits.
using ClassSet = std::uint8_t;
constexpr ClassSet class_set(CharClass one) { return static_cast<ClassSet>(1u << static_cast<unsigned>(one)); }
inline constexpr ClassSet kLetters =
    class_set(CharClass::kUpper) | class_set(CharClass::kLower) | class_set(CharClass::kOtherLetter);
inline constexpr ClassSet kNumbers = class_set(CharClass::kNumber);
inline constexpr ClassSet kNewlines = class_set(CharClass::kNewline);
inline constexpr ClassSet kSpaces = class_set(CharClass::kSpace) | kNewlines;
inline constexpr ClassSet kSymbols = class_set(CharClass::kOther) | class_set(CharClass::kMark);  // [^\s\p{L}\p{N}]

// The table: at each code point its CharClass in the low three bits, and kNfcUnsafe.
inline constexpr std::uint8_t kClassBits = 7;
// The character has no place in text of normal form C, or may be joined to, or moved before, one that stands before it.
// Text without any such character is in normal form C.
inline constexpr std::uint8_t kNfcUnsafe = 8;
const std::uint8_t* unicode_classes();
const char* unicode_version();  // of the table: "16.0.0"

// A character as it stands in text.
struct TextChar {
  char32_t code_point = 0;  // of bytes that are no UTF-8: kNoCodePoint
  std::uint32_t bytes = 1;  // 1 to 4
};
inline constexpr char32_t kNoCodePoint = 0xFFFFFFFF;

// The character at `at` < `end`, strictly as Unicode defines UTF-8 (Table 3-7): what is overlong, a surrogate, beyond
// U+10FFFF or cut off is a byte on its own, as is each byte that follows it out of place.
inline TextChar decode_char(const std::uint8_t* at, const std::uint8_t* end) {
  const std::uint32_t first = at[0];
  if (first < 0x80) return {first, 1};
  const std::ptrdiff_t left = end - at;
  const auto follows = [&](std::ptrdiff_t i) { return (at[i] & 0xC0u) == 0x80; };
  if (first < 0xE0) {
    if (first < 0xC2 || left < 2 || !follows(1)) return {kNoCodePoint, 1};
    return {(first & 0x1Fu) << 6 | (at[1] & 0x3Fu), 2};
  }
  if (first < 0xF0) {
    if (left < 3 || !follows(1) || !follows(2)) return {kNoCodePoint, 1};
    const std::uint32_t code = (first & 0x0Fu) << 12 | (at[1] & 0x3Fu) << 6 | (at[2] & 0x3Fu);
    if (code < 0x800 || (code >= 0xD800 && code < 0xE000)) return {kNoCodePoint, 1};
    return {code, 3};
  }
  if (left < 4 || !follows(1) || !follows(2) || !follows(3)) return {kNoCodePoint, 1};
  const std::uint32_t code = (first & 0x07u) << 18 | (at[1] & 0x3Fu) << 12 | (at[2] & 0x3Fu) << 6 | (at[3] & 0x3Fu);
  if (first > 0xF4 || code < 0x10000 || code > 0x10FFFF) return {kNoCodePoint, 1};
  return {code, 4};
}

}  // namespace atl
