#include "net/tokenizer/byte_tokenizer.h"

namespace atl {
namespace {

constexpr TokenId kEnd = 256;
constexpr std::string_view kEndName = "<|endoftext|>";

TokenizerFacts byte_facts() {
  TokenizerFacts facts;
  facts.kind = kByteTokenizerName;
  facts.vocab_size = kEnd + 1;
  facts.special_tokens = {{std::string(kEndName), kEnd}};
  name_text_ends(facts);
  return facts;
}

}  // namespace

ByteTokenizer::ByteTokenizer() : Tokenizer(byte_facts()) {}

std::unique_ptr<TokenizerScratch> ByteTokenizer::make_scratch() const { return std::make_unique<TokenizerScratch>(); }

Status ByteTokenizer::encode(std::string_view text, SpecialText special, TokenizerScratch&,
                             std::vector<TokenId>& ids) const {
  while (!text.empty()) {
    const std::size_t at = special == SpecialText::kIsToken ? text.find(kEndName) : std::string_view::npos;
    const std::string_view plain = text.substr(0, at);
    for (const char byte : plain) ids.push_back(static_cast<unsigned char>(byte));
    if (at == std::string_view::npos) break;
    ids.push_back(kEnd);
    text.remove_prefix(at + kEndName.size());
  }
  return ok_status();
}

Status ByteTokenizer::decode(std::span<const TokenId> ids, std::string& bytes) const {
  for (const TokenId id : ids) {
    if (id > kEnd) return no_such_token(id);
  }
  for (const TokenId id : ids) {
    if (id == kEnd) {
      bytes += kEndName;
    } else {
      bytes += static_cast<char>(id);
    }
  }
  return ok_status();
}

}  // namespace atl
