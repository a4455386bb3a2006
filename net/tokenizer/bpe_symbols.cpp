#include "net/tokenizer/bpe_symbols.h"

#include <algorithm>

#include "net/tokenizer/byte_letters.h"
#include "net/tokenizer/utf8_text.h"

namespace atl {

bool BpeAlphabet::has_all_bytes() const {
  return std::find(byte_ids.begin(), byte_ids.end(), kNoByteToken) == byte_ids.end();
}

// An unknown token waits for its neighbours, even past those that fall back to bytes.
class BpeSymbols::Writer {
 public:
  Writer(const BpeAlphabet& alphabet, std::vector<TokenId>& ids) : alphabet_(alphabet), ids_(ids) {}

  void put(TokenId id) {
    flush();
    ids_.push_back(id);
  }
  void put_unknown(std::string_view bytes) {
    if (alphabet_.falls_back && fall_back(bytes)) return;
    if (!alphabet_.unknown) return;
    if (waits_ && !alphabet_.fuses_unknown) flush();
    waits_ = true;
  }
  void flush() {
    if (waits_) ids_.push_back(*alphabet_.unknown);
    waits_ = false;
  }

 private:
  bool fall_back(std::string_view bytes) {
    const auto id_of = [&](char byte) { return alphabet_.fallbacks[static_cast<unsigned char>(byte)]; };
    if (std::any_of(bytes.begin(), bytes.end(), [&](char byte) { return id_of(byte) == kNoByteToken; })) return false;
    for (const char byte : bytes) ids_.push_back(id_of(byte));
    return true;
  }

  const BpeAlphabet& alphabet_;
  std::vector<TokenId>& ids_;
  bool waits_ = false;
};

BpeSymbols::BpeSymbols(const BpeAlphabet& alphabet, const TokenBytes& tokens, const std::vector<TokenId>& characters)
    : alphabet_(alphabet) {
  for (const TokenId id : characters) {
    const char32_t code = char_at(tokens[id], 0).code_point;
    if (code >= by_code_point_.size()) by_code_point_.resize(code + 1, kNoByteToken);
    by_code_point_[code] = id;
  }
}

void BpeSymbols::append(std::string_view piece, std::vector<TokenId>& ids) const {
  Writer writer(alphabet_, ids);
  if (alphabet_.of_bytes) {
    for (const char byte : piece) {
      const TokenId id = alphabet_.byte_ids[static_cast<unsigned char>(byte)];
      if (id != kNoByteToken) {
        writer.put(id);
      } else {
        writer.put_unknown(letters_of_bytes({&byte, 1}));
      }
    }
  } else {
    for_each_char(piece, [&](const TextChar& one, std::size_t at) {
      if (one.code_point < by_code_point_.size() && by_code_point_[one.code_point] != kNoByteToken) {
        writer.put(by_code_point_[one.code_point]);
      } else {
        writer.put_unknown(piece.substr(at, one.bytes));
      }
    });
  }
  writer.flush();
}

}  // namespace atl
