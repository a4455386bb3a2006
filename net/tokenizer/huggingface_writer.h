// Tokenizers as HuggingFace's programs open them (AutoTokenizer): tokenizer.json of whatever file load_tokenizer.h
// reads, and tokenizer_config.json beside it. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/base/result.h"
#include "net/tokenizer/split_pattern.h"
#include "net/tokenizer/tokenizer.h"

namespace atl {

struct TokenizerFile {
  std::string name;
  std::string content;
  std::unique_ptr<Tokenizer> tokenizer;  // of this content
};

// `content`: of a tokenizer.json or a model of SentencePiece (tokenizer.model), which are checked and stay as they are,
// or of a tiktoken file, which becomes a tokenizer.json: its ranks are merges there, each way to make a token of two
// others, by the token's rank, as transformers' TikTokenConverter lists them. Llama 3's begins texts with
// <|begin_of_text|>, as Meta's own tokenizer.json does. `pattern`: see read_tokenizer.
Result<TokenizerFile> to_huggingface(std::string_view content, std::optional<SplitPattern> pattern = std::nullopt);

// Of the byte-level tokenizer: no merges, a token a byte.
std::string byte_tokenizer_to_huggingface();

struct TokenizerConfigFacts {
  std::int64_t longest = 0;              // tokens of the longest text that the model was made for
  std::optional<std::int64_t> pad = {};  // a token of its config.json
  // Of a model that learned chats, in the language of Jinja: then a text ends with the tokenizer's first turn end.
  std::string_view chat_template = {};
};
std::string tokenizer_config(const Tokenizer& tokenizer, const TokenizerConfigFacts& model);

}  // namespace atl
