// Characters of text in UTF-8, one after the other, and back. What is no UTF-8 is characters of a byte without a code
// point (unicode_classes.h). Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "net/tokenizer/unicode_classes.h"

namespace atl {

inline TextChar char_at(std::string_view text, std::size_t at) {
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(text.data());
  return decode_char(begin + at, begin + text.size());
}

// `visit`: of each character and its place.
template <class Visit>
void for_each_char(std::string_view text, Visit visit) {
  for (std::size_t at = 0; at < text.size();) {
    const TextChar found = char_at(text, at);
    visit(found, at);
    at += found.bytes;
  }
}

// What it is to a pattern; of a byte without a code point as of other signs.
inline ClassSet class_of(const TextChar& one) {
  if (one.code_point == kNoCodePoint) return class_set(CharClass::kOther);
  return class_set(static_cast<CharClass>(unicode_classes()[one.code_point] & kClassBits));
}
inline bool is_white_space(const TextChar& one) { return (class_of(one) & kSpaces) != 0; }

inline void append_utf8(char32_t code, std::string& text) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

}  // namespace atl
