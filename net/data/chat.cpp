#include "net/data/chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "net/base/json_reader.h"
#include "net/base/printable.h"
#include "net/data/text_blocks.h"
#include "net/data/token_shard.h"

namespace atl {
namespace {

constexpr std::size_t kShownKey = 64;        // bytes of what is named in an error
constexpr unsigned char kLearnedBit = 0x80;  // of a message's role in a document

// What the two kinds of files call the same things.
struct ChatWords {
  const char *list, *role, *content;
};
constexpr ChatWords kMessages{"messages", "role", "content"};
constexpr ChatWords kConversations{"conversations", "from", "value"};
// By ChatRole: as the template has it, and ShareGPT's.
constexpr std::array<std::string_view, 3> kRoles = {"system", "user", "assistant"};
constexpr std::array<std::string_view, 3> kShareGptRoles = {"system", "human", "gpt"};

// Beside the list of messages: what would change what is said, or learned.
constexpr std::array<std::string_view, 19> kNotUnderstood = {
    "tools",  "functions", "tool_choice", "documents",       "images",        "image",
    "videos", "video",     "audios",      "audio",           "chat_template", "chat_template_kwargs",
    "weight", "train",     "training",    "response_format", "rejected",      "rejected_response",
    "objects"};
constexpr std::array<const char*, 2> kSystemKeys = {"system", "system_prompt"};

// In a message: what describes it and says nothing.
constexpr std::array<std::string_view, 24> kDescriptions = {
    "id",    "message_id", "turn",  "turn_id", "turn_identifier", "index", "timestamp", "created_at",
    "model", "language",   "lang",  "source",  "header",          "state", "country",   "hashed_ip",
    "toxic", "redacted",   "score", "rank",    "tokens",          "hash",  "category",  "conversation_id"};

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

// An empty list may stand there as text, as columns of tables have it.
bool says_something(const nlohmann::json& value) {
  const auto* text = value.get_ptr<const std::string*>();
  if (text != nullptr) return !text->empty() && *text != "[]" && *text != "{}";
  return !value.is_null() && !(value.is_structured() && value.empty());
}

template <class Names>
bool is_among(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// 0 or 1, as programs in Python take it.
std::optional<bool> zero_or_one(const nlohmann::json& value) {
  if (value.is_boolean()) return value.get<bool>();
  const double number = value.is_number() ? value.get<double>() : -1;
  if (number == 0 || number == 1) return number == 1;
  return std::nullopt;
}

void read_role(JsonReader& reader, const char* name, ChatMessage& message) {
  std::string role;
  reader.bounded(name, role, kMaxDocumentBytes);
  if (!reader.status().ok()) return;
  for (const auto& names : {kRoles, kShareGptRoles}) {
    const auto found = std::ranges::find(names, role);
    if (found == names.end()) continue;
    message.role = static_cast<ChatRole>(found - names.begin());
    return;
  }
  reader.fail_field(name, fmt::format("is '{}', which is none of system, user (human), assistant (gpt); others are not "
                                      "learned from",
                                      printable(role, kShownKey)));
}

// Whether it is learned; what two keys say of it must agree.
void read_learned(const nlohmann::json& object, JsonReader& reader, ChatMessage& message) {
  for (const char* key : {"weight", "loss", "train", "training"}) {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) continue;
    const std::optional<bool> learned = zero_or_one(*found);
    if (!learned) return reader.fail_field(key, "is neither 0 (not learned) nor 1 (learned)");
    const bool of_anybody = std::string_view(key).starts_with("train");
    if (!of_anybody && message.role != ChatRole::kAssistant) continue;  // it is never learned
    if (message.learned.value_or(*learned) != *learned) {
      return reader.fail_field(key, "and another key of this message say two different things; keep one");
    }
    message.learned = learned;
  }
}

void read_message(const nlohmann::json& object, const ChatWords& of_list, JsonReader& reader, ChatMessage& message) {
  if (!object.is_object()) return;  // as the reader knows
  // Files of either kind have been seen with the other's words.
  const bool is_share_gpt = !reader.has("role") && (reader.has("from") || &of_list == &kConversations);
  const ChatWords& words = is_share_gpt ? kConversations : kMessages;
  for (const auto& [key, value] : object.items()) {
    const bool is_read = key == words.role || key == words.content ||
                         is_among(std::array<std::string_view, 4>{"weight", "loss", "train", "training"}, key);
    if (is_read || is_among(kDescriptions, key) || !says_something(value)) continue;
    return reader.fail_field(printable(key, kShownKey).c_str(),
                             "is not understood, and what it means would be lost; remove it where it means nothing");
  }
  read_role(reader, words.role, message);
  reader.bounded(words.content, message.content, kMaxDocumentBytes);
  if (reader.status().ok()) read_learned(object, reader, message);
}

// The system's words that stand beside the list.
void read_system(JsonReader& reader, const char* list, std::vector<ChatMessage>& chat) {
  for (const char* key : kSystemKeys) {
    if (!reader.has_value(key)) continue;
    std::string text;
    reader.bounded(key, text, kMaxDocumentBytes);
    if (!reader.status().ok()) return;
    if (text.empty()) continue;
    if (chat.empty() || chat.front().role != ChatRole::kSystem) {
      chat.insert(chat.begin(), ChatMessage{ChatRole::kSystem, std::move(text)});
    } else if (stripped(chat.front().content) != stripped(text)) {
      return reader.fail_field(
          key,
          fmt::format("and the message of the system with which {} begins say two different things; keep one", list));
    }
  }
}

// The list of messages: `messages`, or `conversations`.
const ChatWords& words_of(const nlohmann::json& line, JsonReader& reader) {
  if (!line.is_object()) return kMessages;
  const auto has = [&](const ChatWords& words) {
    const auto found = line.find(words.list);
    return found != line.end() && says_something(*found);
  };
  if (has(kMessages) && has(kConversations)) {
    reader.fail_field(kMessages.list, "and conversations stand in one line; keep the one that is meant");
  }
  for (const auto& [key, value] : line.items()) {
    // Of an answer that is a bad example (KTO).
    const bool is_bad = (key == "label" || key == "kto_tag") && value == false;
    const bool means_something = is_bad || is_among(kNotUnderstood, key) || (key == "mask" && value != "User");
    if (!means_something || !says_something(value)) continue;
    reader.fail_field(printable(key, kShownKey).c_str(),
                      "is not understood, and what it means would be lost; remove it where it means nothing");
  }
  return line.contains(kConversations.list) && !has(kMessages) ? kConversations : kMessages;
}

}  // namespace

Result<std::vector<ChatMessage>> read_chat(std::string_view line) {
  const auto json = parse_bounded_json(line, kMaxDocumentBytes, kMaxLineDepth, RepeatedKeys::kLastCounts);
  if (!json.ok()) return Error{ErrorCode::kInvalidArgument, json.error().message};
  JsonReader reader(*json);
  const ChatWords& words = words_of(*json, reader);
  const nlohmann::json* list = reader.status().ok() ? reader.entries(words.list, kMostChatMessages) : nullptr;
  std::vector<ChatMessage> chat;
  for (std::size_t i = 0; list != nullptr && i < list->size() && reader.status().ok(); ++i) {
    JsonReader one((*list)[i], reader.element_path(words.list, i));
    read_message((*list)[i], words, one, chat.emplace_back());
    if (!one.status().ok()) reader.fail(one.status().error());
  }
  if (reader.status().ok() && chat.empty()) reader.fail_field(words.list, "holds no message");
  if (reader.status().ok()) read_system(reader, words.list, chat);
  if (!reader.status().ok()) return Error{ErrorCode::kInvalidArgument, reader.status().error().message};
  return chat;
}

// Of each message its role and whether it is learned, its size, and what it says.
std::string document_of(std::span<const ChatMessage> chat) {
  std::string document;
  for (const ChatMessage& message : chat) {
    const auto size = static_cast<std::uint32_t>(message.content.size());
    document += static_cast<char>(static_cast<unsigned char>(message.role) | (message.is_learned() ? kLearnedBit : 0));
    document.append(reinterpret_cast<const char*>(&size), sizeof(size));
    document += message.content;
  }
  return document;
}

std::vector<ChatMessage> chat_of(std::string_view document) {
  std::vector<ChatMessage> chat;
  while (!document.empty()) {
    const auto front = static_cast<unsigned char>(document.front());
    const bool learned = (front & kLearnedBit) != 0;
    std::uint32_t size = 0;
    std::memcpy(&size, document.data() + 1, sizeof(size));
    document.remove_prefix(1 + sizeof(size));
    chat.push_back({static_cast<ChatRole>(front & ~kLearnedBit), std::string(document.substr(0, size)), learned});
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

Status append_chat(std::span<const ChatMessage> chat, const ChatTokens& special, const Tokenizer& tokenizer,
                   TokenizerScratch& scratch, std::vector<TokenId>& ids) {
  constexpr std::string_view kBetween = "\n\n";  // the header and what is said
  const auto text = [&](std::string_view what) { return tokenizer.encode(what, SpecialText::kIsText, scratch, ids); };
  std::size_t first = ids.size();
  const auto count_no_more = [&] { ids[first++] |= kUncountedBit; };
  ids.push_back(special.begin_of_text);
  for (const ChatMessage& message : chat) {
    ids.push_back(special.start_header);
    ATOLL_RETURN_IF_ERROR(text(kRoles[static_cast<std::size_t>(message.role)]));
    ids.push_back(special.end_header);
    while (first < ids.size()) count_no_more();
    ATOLL_RETURN_IF_ERROR(text(std::string(kBetween).append(stripped(message.content))));
    // A token that reaches into what is said counts with it.
    for (std::size_t end = 0; first < ids.size(); count_no_more()) {
      end += tokenizer.within_text(ids[first]).size();
      if (end > kBetween.size()) break;
    }
    ids.push_back(special.end_of_turn);
    if (message.is_learned()) first = ids.size();
    while (first < ids.size()) count_no_more();
  }
  return ok_status();
}

}  // namespace atl
