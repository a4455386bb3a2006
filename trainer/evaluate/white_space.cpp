#include "trainer/evaluate/white_space.h"

#include <algorithm>
#include <array>

namespace atl {
namespace {

// Beside those of one byte: U+0085, U+00A0, U+1680, U+2000 to U+200A, U+2028, U+2029, U+202F, U+205F, U+3000.
constexpr std::array<std::string_view, 19> kWide{
    "\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81", "\xe2\x80\x82", "\xe2\x80\x83",
    "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86", "\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89", "\xe2\x80\x8a",
    "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80"};

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || (c >= '\x1c' && c <= '\x1f'); }

// Bytes of the white space that text begins with, and ends with; 0: none.
std::size_t leading(std::string_view text) {
  if (text.empty()) return 0;
  if (is_space(text.front())) return 1;
  const auto found = std::ranges::find_if(kWide, [&](std::string_view wide) { return text.starts_with(wide); });
  return found == kWide.end() ? 0 : found->size();
}
std::size_t trailing(std::string_view text) {
  if (text.empty()) return 0;
  if (is_space(text.back())) return 1;
  const auto found = std::ranges::find_if(kWide, [&](std::string_view wide) { return text.ends_with(wide); });
  return found == kWide.end() ? 0 : found->size();
}

}  // namespace

std::size_t trailing_white_space(std::string_view text) {
  std::string_view left = text;
  while (const std::size_t bytes = trailing(left)) left.remove_suffix(bytes);
  return text.size() - left.size();
}

std::size_t split_count(std::string_view text) {
  std::size_t count = 1;
  while (!text.empty()) {
    const std::size_t bytes = leading(text);
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
    // The end of a run.
    if (bytes > 0 && leading(text) == 0) ++count;
  }
  return count;
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace atl
