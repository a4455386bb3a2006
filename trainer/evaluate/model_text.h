// Text as a model takes it: its tokenizer, with what the model wants before a text. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/result.h"
#include "net/tokenizer/tokenizer.h"

namespace atl {

class ModelText {
 public:
  // `ends`: tokens that end a text by what the model's directory says (net/model_files/end_tokens.h), beside the
  // tokenizer's own end of text and those of a chat's messages. kInvalidArgument: the tokenizer has tokens that the
  // model has not, or neither a begin nor an end of text.
  static Result<ModelText> make(std::unique_ptr<Tokenizer> tokenizer, std::int64_t vocab_size,
                                std::span<const std::int64_t> ends = {});

  // What a text begins with where nothing is before it: the tokenizer's begin of text, else its end of text, which
  // stands before each document of a run's data. lm-evaluation-harness: prefix_token_id.
  std::int32_t prefix() const { return prefix_; }
  // Whether a text that is written ends with it.
  bool ends_text(std::int32_t token) const;
  // Tokens below it stand for text; those of a padded vocabulary above do not.
  std::int64_t vocab_size() const { return vocab_size_; }
  const std::string& kind() const { return tokenizer_->facts().kind; }

  // Text that spells a special token is that token, as in transformers: who asks a model writes its templates, too.
  // kInvalidArgument as Tokenizer::encode.

  // With the begin of text where the tokenizer's file asks for one (transformers: add_special_tokens), and the text
  // does not begin with it itself.
  Result<std::vector<std::int32_t>> encode(std::string_view text);
  // With the prefix, unless the text begins with it itself.
  Result<std::vector<std::int32_t>> encode_prompt(std::string_view text);
  Result<std::vector<std::int32_t>> encode_plain(std::string_view text);
  // The token's bytes, perhaps a part of a character; nothing for special tokens.
  std::string decode(std::int32_t token) const;

 private:
  explicit ModelText(std::unique_ptr<Tokenizer> tokenizer);
  Result<std::vector<std::int32_t>> encode_after(std::int32_t first, std::string_view text);

  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<TokenizerScratch> scratch_;
  std::int32_t prefix_ = 0;
  std::vector<std::int64_t> ends_;
  std::int64_t vocab_size_ = 0;
};

}  // namespace atl
