#include "trainer/evaluate/model_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace atl {
ModelText::ModelText(std::unique_ptr<Tokenizer> tokenizer)
    : tokenizer_(std::move(tokenizer)), scratch_(tokenizer_->make_scratch()) {}

Result<ModelText> ModelText::make(std::unique_ptr<Tokenizer> tokenizer, std::int64_t vocab_size,
                                  std::span<const std::int64_t> ends) {
  ModelText text(std::move(tokenizer));
  const TokenizerFacts& facts = text.tokenizer_->facts();
  if (facts.vocab_size > vocab_size) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the tokenizer has {} tokens and the model {}: they do not belong together; name the "
                             "model's own with --tokenizer",
                             facts.vocab_size, vocab_size)};
  }
  if (!facts.begin_of_text && !facts.end_of_text) {
    return Error{ErrorCode::kInvalidArgument,
                 "the tokenizer has neither a begin nor an end of text, after which a text could begin"};
  }
  text.prefix_ = static_cast<std::int32_t>(facts.begin_of_text ? *facts.begin_of_text : *facts.end_of_text);
  text.ends_.assign(ends.begin(), ends.end());
  if (facts.end_of_text) text.ends_.push_back(*facts.end_of_text);
  // No text of a dataset becomes one of them.
  for (const TokenId token : text.tokenizer_->turn_ends()) text.ends_.push_back(static_cast<std::int32_t>(token));
  text.vocab_size_ = facts.vocab_size;
  return text;
}

bool ModelText::ends_text(std::int32_t token) const { return std::ranges::find(ends_, token) != ends_.end(); }

Result<std::vector<std::int32_t>> ModelText::encode_plain(std::string_view text) {
  std::vector<TokenId> ids;
  ATOLL_RETURN_IF_ERROR(tokenizer_->encode(text, SpecialText::kIsToken, *scratch_, ids));
  return std::vector<std::int32_t>(ids.begin(), ids.end());
}

Result<std::vector<std::int32_t>> ModelText::encode_after(std::int32_t first, std::string_view text) {
  ATOLL_ASSIGN_OR_RETURN(std::vector<std::int32_t> tokens, encode_plain(text));
  if (tokens.empty() || tokens.front() != first) tokens.insert(tokens.begin(), first);
  return tokens;
}

Result<std::vector<std::int32_t>> ModelText::encode(std::string_view text) {
  const TokenizerFacts& facts = tokenizer_->facts();
  if (!facts.begins_with_token || !facts.begin_of_text) return encode_plain(text);
  return encode_after(static_cast<std::int32_t>(*facts.begin_of_text), text);
}

Result<std::vector<std::int32_t>> ModelText::encode_prompt(std::string_view text) {
  return encode_after(prefix_, text);
}

std::string ModelText::decode(std::int32_t token) const {
  return token < 0 ? std::string() : tokenizer_->within_text(static_cast<TokenId>(token));
}

}  // namespace atl
