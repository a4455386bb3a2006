// Conversations as fine-tuning has them: what a line of JSON Lines says, and Llama 3's tokens of it, of which those
// that an assistant says count. Values; any thread.
#pragma once

#include <cstdint>
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
  std::string content;  // UTF-8
};
inline constexpr std::size_t kMostChatMessages = 1u << 16;

// {"messages": [{"role": "system" | "user" | "assistant", "content": TEXT}, ...]}, or ShareGPT's
// {"conversations": [{"from": "system" | "human" | "gpt", "value": TEXT}, ...]}; at least one message. What stands
// beside them is nobody's. kInvalidArgument.
Result<std::vector<ChatMessage>> read_chat(std::string_view line);

// A chat as one string, another for each, and the chat of such a string.
std::string document_of(std::span<const ChatMessage> chat);
std::vector<ChatMessage> chat_of(std::string_view document);

struct ChatTokens {
  TokenId begin_of_text = 0, start_header = 0, end_header = 0, end_of_turn = 0;
};
// By their names; kInvalidArgument says which of them the tokenizer lacks.
Result<ChatTokens> llama3_chat_tokens(const Tokenizer& tokenizer);

// Appends the tokens of Llama 3's template:
//   <|begin_of_text|> then of each message <|start_header_id|>ROLE<|end_header_id|>\n\nCONTENT<|eot_id|>
// CONTENT is without the white space at its ends, as Python's str.strip has it, and text throughout: the name of a
// special token in it is none. All carry kUncountedBit (token_shard.h) but those of an assistant's CONTENT and the
// <|eot_id|> behind it.
void append_chat(std::span<const ChatMessage> chat, const ChatTokens& special, const Tokenizer& tokenizer,
                 TokenizerScratch& scratch, std::vector<TokenId>& ids);

}  // namespace atl
