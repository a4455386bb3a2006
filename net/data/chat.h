// Conversations as fine-tuning has them: what a line of JSON Lines says, and Llama 3's tokens of it, of which those
// count that are to be learned. Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/result.h"
#include "net/tokenizer/tokenizer.h"

namespace atl {

enum class ChatRole : std::uint8_t { kSystem, kUser, kAssistant };

struct ChatMessage {
  ChatRole role = ChatRole::kUser;
  std::string content;               // UTF-8
  std::optional<bool> learned = {};  // as its line says; none: an assistant's is

  bool is_learned() const { return learned.value_or(role == ChatRole::kAssistant); }
};
inline constexpr std::size_t kMostChatMessages = 1u << 16;

// {"messages": [{"role": "system" | "user" | "assistant", "content": TEXT}, ...]}, or ShareGPT's
// {"conversations": [{"from": "system" | "human" | "gpt", "value": TEXT}, ...]}; at least one message. Beside the list:
//
//   "system", "system_prompt"  the first message, of the role system, where the list does not begin with the same one
//
// In a message:
//
//   "weight", "loss"           0 or 1 (OpenAI's, ms-swift's): whether what an assistant says here is learned
//   "train", "training"        the same of whoever says it (axolotl's)
//
// What else may change what is meant (tool calls, tools, names, images) is refused by its name, unless it is null or
// empty; so is any key of a message but those that describe it (an id, a time). kInvalidArgument.
Result<std::vector<ChatMessage>> read_chat(std::string_view line);

// A chat as one string, another for each, and the chat of such a string.
std::string document_of(std::span<const ChatMessage> chat);
std::vector<ChatMessage> chat_of(std::string_view document);

struct ChatTokens {
  TokenId begin_of_text = 0, start_header = 0, end_header = 0, end_of_turn = 0;
};
// By their names; kInvalidArgument says which of them the tokenizer lacks.
Result<ChatTokens> llama3_chat_tokens(const Tokenizer& tokenizer);

// Appends the tokens of Llama 3's template (chat_template.h):
//   <|begin_of_text|> then of each message <|start_header_id|>ROLE<|end_header_id|>\n\nCONTENT<|eot_id|>
// CONTENT is without the white space at its ends, as Python's str.strip has it, and text throughout: the name of a
// special token in it is none. Text between two special tokens is cut as one, as programs do that render the template
// before they cut. All carry kUncountedBit (token_shard.h) but those of a CONTENT that is learned and the <|eot_id|>
// behind it. kInvalidArgument as Tokenizer::encode.
Status append_chat(std::span<const ChatMessage> chat, const ChatTokens& special, const Tokenizer& tokenizer,
                   TokenizerScratch& scratch, std::vector<TokenId>& ids);

}  // namespace atl
