// A token is a byte; one more, 256, ends a text (net/data/token_shard.h says the same of shards). Any thread.
#pragma once

#include "net/tokenizer/tokenizer.h"

namespace atl {

inline constexpr std::string_view kByteTokenizerName = "bytes";

class ByteTokenizer final : public Tokenizer {
 public:
  ByteTokenizer();

  std::unique_ptr<TokenizerScratch> make_scratch() const override;
  Status encode(std::string_view text, SpecialText special, TokenizerScratch& scratch,
                std::vector<TokenId>& ids) const override;
  Status decode(std::span<const TokenId> ids, std::string& bytes) const override;
};

}  // namespace atl
