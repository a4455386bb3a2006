// Text to tokens and back, whichever tokenizer a model has: bytes, byte-level BPE as tiktoken and HuggingFace's
// tokenizers do it (bpe_tokenizer.h), or SentencePiece. load_tokenizer.h makes one of a file.
//
// A tokenizer is made once and never changes: any number of threads may use it at once, each with a scratch of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/result.h"

namespace atl {

using TokenId = std::uint32_t;

// What a token is that stands for no text of its own: the end of a document, the begin of a message.
struct SpecialToken {
  std::string name;  // as it would be written in text: "<|end_of_text|>"
  TokenId id = 0;
};

// What text that spells a special token is. Text of others is never trusted with them: whoever writes "<|end_of_text|>"
// into a web page would end the document.
enum class SpecialText { kIsText, kIsToken };

// What is known of a tokenizer.
struct TokenizerFacts {
  // "bytes", the pattern of a byte-level BPE (split_pattern_name), where that is none of those "byte_level_bpe", of one
  // of characters "bpe", "sentencepiece".
  std::string kind;
  std::string sha256;  // of the file, lower-case hex; of "bytes", which has none: empty
  // Every id is below it. Not every number below it need be an id.
  std::uint32_t vocab_size = 0;
  std::vector<SpecialToken> special_tokens;  // by rising id
  // Before a text's first token, where the model wants one; and between texts. Taken by their names, which models
  // share; empty when no special token has such a name.
  std::optional<TokenId> begin_of_text, end_of_text;
  // The file says that text is given to the model with begin_of_text before it. encode() adds it for nobody: that is
  // for whoever puts texts together.
  bool begins_with_token = false;
};

// What a thread needs to encode: what it remembers of words that it met, and room to work. Of one tokenizer, whose
// make_scratch made it; one thread at a time.
class TokenizerScratch {
 public:
  virtual ~TokenizerScratch() = default;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  const TokenizerFacts& facts() const { return facts_; }
  std::optional<TokenId> special_token(std::string_view name) const;
  bool is_special(TokenId id) const;
  // Those that end what a model says in a chat, in the templates of Llama 3, ChatML, Phi-3, Gemma and Command-R; known
  // by their names, as llama.cpp knows them (special_eog_ids).
  std::vector<TokenId> turn_ends() const;

  virtual std::unique_ptr<TokenizerScratch> make_scratch() const = 0;
  // Appends the tokens of `text`, which may be any bytes, UTF-8 or not, below 4 GiB. The tokens of two texts one after
  // the other are not those of both as one: texts are cut where documents are. kInvalidArgument: the tokenizer's own
  // expressions take too long on it; what was appended is then not the text's.
  virtual Status encode(std::string_view text, SpecialText special, TokenizerScratch& scratch,
                        std::vector<TokenId>& ids) const = 0;
  // Appends the bytes of these tokens; a special token is its name. decode(encode(text)) is text, but where the
  // tokenizer changes text before (Qwen: normal form C; SentencePiece). kInvalidArgument, and nothing appended, when
  // one is no token.
  virtual Status decode(std::span<const TokenId> ids, std::string& bytes) const = 0;
  // What a token adds to text that is there: bytes, perhaps a part of a character; nothing for special tokens and
  // numbers that are no token.
  virtual std::string within_text(TokenId id) const;
  // What its merges make, in the order in which they are applied, each once; empty where there are none that are known.
  virtual std::vector<TokenId> merge_order() const { return {}; }

 protected:
  explicit Tokenizer(TokenizerFacts facts) : facts_(std::move(facts)) {}

  Error no_such_token(TokenId id) const;

 private:
  const TokenizerFacts facts_;
};

// Takes begin_of_text and end_of_text from the names of special tokens.
void name_text_ends(TokenizerFacts& facts);

}  // namespace atl
