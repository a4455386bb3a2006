#include "net/tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

namespace atl {
namespace {

std::optional<TokenId> first_of(const std::vector<SpecialToken>& tokens,
                                std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const auto found =
        std::find_if(tokens.begin(), tokens.end(), [&](const auto& token) { return token.name == name; });
    if (found != tokens.end()) return found->id;
  }
  return std::nullopt;
}

}  // namespace

std::optional<TokenId> Tokenizer::special_token(std::string_view name) const {
  return first_of(facts_.special_tokens, {name});
}

std::vector<TokenId> Tokenizer::turn_ends() const {
  std::vector<TokenId> ends;
  for (const std::string_view name :
       {"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|END_OF_TURN_TOKEN|>"}) {
    if (const auto token = special_token(name)) ends.push_back(*token);
  }
  return ends;
}

bool Tokenizer::is_special(TokenId id) const {
  const auto& tokens = facts_.special_tokens;
  const auto found = std::lower_bound(tokens.begin(), tokens.end(), id,
                                      [](const SpecialToken& token, TokenId wanted) { return token.id < wanted; });
  return found != tokens.end() && found->id == id;
}

std::string Tokenizer::within_text(TokenId id) const {
  std::string bytes;
  if (is_special(id) || !decode({&id, 1}, bytes).ok()) return {};
  return bytes;
}

Error Tokenizer::no_such_token(TokenId id) const {
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("{} is no token of this tokenizer (its vocabulary has {}); decode with the tokenizer that the "
                  "tokens were made with",
                  id, facts_.vocab_size)};
}

void name_text_ends(TokenizerFacts& facts) {
  facts.end_of_text = first_of(facts.special_tokens, {"<|end_of_text|>", "<|endoftext|>", "</s>", "<eos>",
                                                      "<EOS_TOKEN>", "<｜end▁of▁sentence｜>"});
  facts.begin_of_text = first_of(facts.special_tokens, {"<|begin_of_text|>", "<|startoftext|>", "<s>", "<bos>",
                                                        "<BOS_TOKEN>", "<｜begin▁of▁sentence｜>"});
}

}  // namespace atl
