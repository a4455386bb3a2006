#include "net/data/chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "net/base/json_reader.h"
#include "net/data/text_blocks.h"
#include "net/data/token_shard.h"

namespace atl {
namespace {

constexpr std::size_t kMaxRoleName = 64;

// What the two kinds of files call the same things.
struct ChatWords {
  const char *list, *role, *content;
  std::array<std::string_view, 3> roles;  // by ChatRole
};
constexpr ChatWords kMessages{"messages", "role", "content", {"system", "user", "assistant"}};
constexpr ChatWords kConversations{"conversations", "from", "value", {"system", "human", "gpt"}};

void read_message(JsonReader& reader, const ChatWords& words, ChatMessage& message) {
  std::string role;
  reader.bounded(words.role, role, kMaxRoleName);
  reader.bounded(words.content, message.content, kMaxDocumentBytes);
  const auto found = std::ranges::find(words.roles, role);
  if (found == words.roles.end()) {
    return reader.fail_field(words.role,
                             fmt::format("is none of {}, {}, {}", words.roles[0], words.roles[1], words.roles[2]));
  }
  message.role = static_cast<ChatRole>(found - words.roles.begin());
}

// Python's str.isspace, but for what is above U+FFFF, where nothing is.
constexpr std::array<std::string_view, 29> kWhiteSpace = {" ",
                                                          "\t",
                                                          "\n",
                                                          "\v",
                                                          "\f",
                                                          "\r",
                                                          "\x1c",
                                                          "\x1d",
                                                          "\x1e",
                                                          "\x1f",
                                                          "\xc2\x85",
                                                          "\xc2\xa0",
                                                          "\xe1\x9a\x80",
                                                          "\xe2\x80\x80",
                                                          "\xe2\x80\x81",
                                                          "\xe2\x80\x82",
                                                          "\xe2\x80\x83",
                                                          "\xe2\x80\x84",
                                                          "\xe2\x80\x85",
                                                          "\xe2\x80\x86",
                                                          "\xe2\x80\x87",
                                                          "\xe2\x80\x88",
                                                          "\xe2\x80\x89",
                                                          "\xe2\x80\x8a",
                                                          "\xe2\x80\xa8",
                                                          "\xe2\x80\xa9",
                                                          "\xe2\x80\xaf",
                                                          "\xe2\x81\x9f",
                                                          "\xe3\x80\x80"};

std::string_view stripped(std::string_view text) {
  const auto space = [](const auto& is_there) {
    const auto found = std::ranges::find_if(kWhiteSpace, is_there);
    return found == kWhiteSpace.end() ? std::size_t{0} : found->size();
  };
  while (const std::size_t size = space([&](std::string_view one) { return text.starts_with(one); })) {
    text.remove_prefix(size);
  }
  while (const std::size_t size = space([&](std::string_view one) { return text.ends_with(one); })) {
    text.remove_suffix(size);
  }
  return text;
}

}  // namespace

Result<std::vector<ChatMessage>> read_chat(std::string_view line) {
  const auto json = parse_bounded_json(line, kMaxDocumentBytes, kMaxLineDepth, RepeatedKeys::kLastCounts);
  if (!json.ok()) return Error{ErrorCode::kInvalidArgument, json.error().message};
  JsonReader reader(*json);
  const ChatWords& words = json->is_object() && json->contains(kConversations.list) ? kConversations : kMessages;
  const nlohmann::json* list = reader.entries(words.list, kMostChatMessages);
  std::vector<ChatMessage> chat;
  for (std::size_t i = 0; list != nullptr && i < list->size() && reader.status().ok(); ++i) {
    JsonReader one((*list)[i], reader.element_path(words.list, i));
    read_message(one, words, chat.emplace_back());
    if (!one.status().ok()) reader.fail(one.status().error());
  }
  if (reader.status().ok() && chat.empty()) reader.fail_field(words.list, "holds no message");
  if (!reader.status().ok()) return Error{ErrorCode::kInvalidArgument, reader.status().error().message};
  return chat;
}

// Of each message its role, its size, and what it says.
std::string document_of(std::span<const ChatMessage> chat) {
  std::string document;
  for (const ChatMessage& message : chat) {
    const auto size = static_cast<std::uint32_t>(message.content.size());
    document += static_cast<char>(message.role);
    document.append(reinterpret_cast<const char*>(&size), sizeof(size));
    document += message.content;
  }
  return document;
}

std::vector<ChatMessage> chat_of(std::string_view document) {
  std::vector<ChatMessage> chat;
  while (!document.empty()) {
    const auto role = static_cast<ChatRole>(document.front());
    std::uint32_t size = 0;
    std::memcpy(&size, document.data() + 1, sizeof(size));
    document.remove_prefix(1 + sizeof(size));
    chat.push_back({role, std::string(document.substr(0, size))});
    document.remove_prefix(size);
  }
  return chat;
}

Result<ChatTokens> llama3_chat_tokens(const Tokenizer& tokenizer) {
  std::string missing;
  const auto id_of = [&](const char* name) {
    const std::optional<TokenId> id = tokenizer.special_token(name);
    if (!id) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", name);
    return id.value_or(0);
  };
  const ChatTokens tokens{id_of("<|begin_of_text|>"), id_of("<|start_header_id|>"), id_of("<|end_header_id|>"),
                          id_of("<|eot_id|>")};
  if (missing.empty()) return tokens;
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("chats are written in Llama 3's template, and the tokenizer has no {}: name one of Llama 3's "
                  "by --tokenizer, or add these to its special tokens",
                  missing)};
}

void append_chat(std::span<const ChatMessage> chat, const ChatTokens& special, const Tokenizer& tokenizer,
                 TokenizerScratch& scratch, std::vector<TokenId>& ids) {
  const auto text = [&](std::string_view what) { tokenizer.encode(what, SpecialText::kIsText, scratch, ids); };
  std::size_t first = ids.size();
  const auto end_of_part = [&](bool counts) {
    for (; first < ids.size(); ++first) ids[first] |= counts ? 0 : kUncountedBit;
  };
  ids.push_back(special.begin_of_text);
  for (const ChatMessage& message : chat) {
    ids.push_back(special.start_header);
    text(kMessages.roles[static_cast<std::size_t>(message.role)]);
    ids.push_back(special.end_header);
    text("\n\n");
    end_of_part(false);
    text(stripped(message.content));
    ids.push_back(special.end_of_turn);
    end_of_part(message.role == ChatRole::kAssistant);
  }
}

}  // namespace atl
