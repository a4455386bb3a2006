#include "net/tokenizer/byte_letters.h"

#include "net/tokenizer/utf8_text.h"

namespace atl {

std::optional<std::string> bytes_of_letters(std::string_view letters) {
  std::string bytes;
  bool are_letters = true;
  for_each_char(letters, [&](const TextChar& letter, std::size_t) {
    are_letters = are_letters && letter.code_point < kBytesOfLetters.size() && kBytesOfLetters[letter.code_point] >= 0;
    if (are_letters) bytes += static_cast<char>(kBytesOfLetters[letter.code_point]);
  });
  if (!are_letters) return std::nullopt;
  return bytes;
}

std::string letters_of_bytes(std::string_view bytes) {
  std::string letters;
  for (const char byte : bytes) append_utf8(kLettersOfBytes[static_cast<unsigned char>(byte)], letters);
  return letters;
}

}  // namespace atl
