// GPT-2 writes bytes as printable letters (bytes_to_unicode in its encoder.py), and tokenizer.json files of byte-level
// BPE do so since: those that print in Latin-1 as themselves, the others as U+0100 and on, in their order.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace atl {

// By byte: the letter's code point.
inline constexpr auto kLettersOfBytes = [] {
  std::array<std::uint16_t, 256> letters{};
  int others = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool prints = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    letters[static_cast<std::size_t>(byte)] = static_cast<std::uint16_t>(prints ? byte : others++);
  }
  return letters;
}();

// By letter: the byte, or -1.
inline constexpr auto kBytesOfLetters = [] {
  std::array<std::int16_t, 324> bytes{};
  bytes.fill(-1);
  for (std::size_t byte = 0; byte < kLettersOfBytes.size(); ++byte) {
    bytes[kLettersOfBytes[byte]] = static_cast<std::int16_t>(byte);
  }
  return bytes;
}();

// Text of letters in UTF-8 to the bytes, and back. Empty: it has another letter.
std::optional<std::string> bytes_of_letters(std::string_view letters);
std::string letters_of_bytes(std::string_view bytes);

}  // namespace atl
