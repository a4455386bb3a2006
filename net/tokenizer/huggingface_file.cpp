#include "net/tokenizer/huggingface_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "net/base/json_text.h"
#include "net/base/printable.h"
#include "net/tokenizer/byte_letters.h"
#include "net/tokenizer/load_tokenizer.h"
#include "net/tokenizer/unicode_classes.h"

namespace atl {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 16;
constexpr int kMaxSequence = 8;  // parts of a normalizer, a pre-tokenizer, a post-processor

Error bad(std::string why) { return Error{ErrorCode::kInvalidArgument, std::move(why)}; }
Error unsupported(std::string_view what, std::string_view why) {
  return bad(fmt::format("{} is not supported: {}", printable(what), why));
}

constexpr std::string_view kFamily =
    "only the family of byte-level BPE is (GPT-2, Llama 3, Qwen 2.5); choose a model with such a tokenizer";

// nullptr: it is not there, or null.
const json* find(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}
std::string text_or_empty(const json& object, const char* name) {
  const json* const found = find(object, name);
  const auto* const text = found == nullptr ? nullptr : found->get_ptr<const std::string*>();
  return text == nullptr ? std::string() : *text;
}
// What is not true or false is not what it is otherwise either.
Result<bool> flag(const json& object, const char* name, bool otherwise) {
  const json* const found = find(object, name);
  if (found == nullptr) return otherwise;
  if (!found->is_boolean()) return bad(fmt::format("{} is neither true nor false", name));
  return found->get<bool>();
}
Result<TokenId> id_of(const json& value, std::string_view whose) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= kMaxVocabulary) {
    return bad(fmt::format("the id of the token \"{}\" is no number below {}", printable(whose), kMaxVocabulary));
  }
  return value.get<TokenId>();
}

// The parts of something that may be a Sequence, each an object with a type; of null none.
Result<std::vector<const json*>> parts_of(const json& root, const char* name, const char* list) {
  std::vector<const json*> parts;
  const json* const whole = find(root, name);
  if (whole == nullptr) return parts;
  if (!whole->is_object()) return bad(fmt::format("{} is no object", name));
  if (text_or_empty(*whole, "type") != "Sequence") return std::vector<const json*>{whole};
  const json* const listed = find(*whole, list);
  if (listed == nullptr || !listed->is_array())
    return bad(fmt::format("the Sequence of {} has no list \"{}\"", name, list));
  if (listed->size() > kMaxSequence) return bad(fmt::format("{} has more than {} parts", name, kMaxSequence));
  for (const json& part : *listed) {
    if (!part.is_object()) return bad(fmt::format("a part of {} is no object", name));
    parts.push_back(&part);
  }
  return parts;
}

// ---- letters that stand for bytes

// Empty: it has another letter.
std::optional<std::string> bytes_of_letters(std::string_view letters) {
  std::string bytes;
  const auto* at = reinterpret_cast<const std::uint8_t*>(letters.data());
  for (const std::uint8_t* const end = at + letters.size(); at < end;) {
    const TextChar letter = decode_char(at, end);
    if (letter.code_point >= kBytesOfLetters.size() || kBytesOfLetters[letter.code_point] < 0) return std::nullopt;
    bytes += static_cast<char>(kBytesOfLetters[letter.code_point]);
    at += letter.bytes;
  }
  return bytes;
}

// ---- the model: vocabulary and merges

using IdsByLetters = std::unordered_map<std::string_view, TokenId>;

Status put_token(TokenId id, std::string bytes, std::string_view letters, BpeVocabulary& vocabulary) {
  if (bytes.empty() || bytes.size() > kMaxTokenBytes) {
    return bad(fmt::format("token {} has {} bytes, not 1 to {}", id, bytes.size(), kMaxTokenBytes));
  }
  if (id >= vocabulary.tokens.size()) vocabulary.tokens.resize(id + 1);
  if (!vocabulary.tokens[id].empty()) {
    return bad(fmt::format("the id {} of the token \"{}\" is another's, too", id, printable(letters)));
  }
  vocabulary.tokens[id] = std::move(bytes);
  return ok_status();
}

Result<IdsByLetters> read_vocab(const json& model, BpeVocabulary& vocabulary) {
  const json* const vocab = find(model, "vocab");
  if (vocab == nullptr || !vocab->is_object()) return bad("model.vocab is no object of tokens and their ids");
  if (vocab->size() > kMaxVocabulary) return bad(fmt::format("model.vocab has more than {} tokens", kMaxVocabulary));
  IdsByLetters ids;
  ids.reserve(vocab->size());
  std::array<bool, 256> found{};
  for (const auto& [letters, value] : vocab->items()) {
    ATOLL_ASSIGN_OR_RETURN(const TokenId id, id_of(value, letters));
    ids.emplace(letters, id);
    const auto bytes = bytes_of_letters(letters);
    ATOLL_RETURN_IF_ERROR(put_token(id, bytes.value_or(letters), letters, vocabulary));
    if (!bytes) continue;  // text never comes to it, which is all in the letters of bytes by then
    vocabulary.mergeable.push_back(id);
    if (bytes->size() != 1) continue;
    vocabulary.byte_ids[static_cast<unsigned char>(bytes->front())] = id;
    found[static_cast<unsigned char>(bytes->front())] = true;
  }
  if (const auto missing = std::find(found.begin(), found.end(), false); missing != found.end()) {
    return bad(fmt::format("model.vocab has no token for the byte 0x{:02x}: it is no byte-level BPE; {}",
                           missing - found.begin(), kFamily));
  }
  return ids;
}

// "left right", or a list of both.
Result<std::pair<std::string_view, std::string_view>> halves_of(const json& merge, std::size_t number) {
  const auto no_merge = [&] { return bad(fmt::format("model.merges[{}] is not two tokens", number)); };
  if (const auto* const text = merge.get_ptr<const std::string*>()) {
    const std::size_t space = text->find(' ');
    if (space == std::string::npos || text->find(' ', space + 1) != std::string::npos) return no_merge();
    return std::pair(std::string_view(*text).substr(0, space), std::string_view(*text).substr(space + 1));
  }
  if (!merge.is_array() || merge.size() != 2 || !merge[0].is_string() || !merge[1].is_string()) return no_merge();
  return std::pair<std::string_view, std::string_view>(merge[0].get_ref<const std::string&>(),
                                                       merge[1].get_ref<const std::string&>());
}

Status read_merges(const json& model, const IdsByLetters& ids, BpeVocabulary& vocabulary) {
  const json* const merges = find(model, "merges");
  if (merges == nullptr || !merges->is_array()) return bad("model.merges is no list");
  if (merges->size() > kMaxMerges) return bad(fmt::format("model.merges has more than {} merges", kMaxMerges));
  vocabulary.merges.reserve(merges->size());
  std::string both;
  for (const json& merge : *merges) {
    const std::size_t number = vocabulary.merges.size();
    ATOLL_ASSIGN_OR_RETURN(const auto halves, halves_of(merge, number));
    both.assign(halves.first).append(halves.second);
    const auto left = ids.find(halves.first), right = ids.find(halves.second), result = ids.find(both);
    if (left == ids.end() || right == ids.end() || result == ids.end()) {
      return bad(fmt::format("model.merges[{}] has a token, or makes one, that is not in model.vocab", number));
    }
    vocabulary.merges.push_back({left->second, right->second, result->second});
  }
  return ok_status();
}

Status read_model(const json& root, BpeVocabulary& vocabulary) {
  const json* const model = find(root, "model");
  if (model == nullptr || !model->is_object()) return bad("it has no model");
  if (const std::string type = text_or_empty(*model, "type"); !type.empty() && type != "BPE") {
    return unsupported(fmt::format("a model of type {}", type), kFamily);
  }
  for (const char* const name : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (const json* const found = find(*model, name); found != nullptr && *found != "") {
      return unsupported(fmt::format("model.{}", name), kFamily);
    }
  }
  if (const json* const dropout = find(*model, "dropout"); dropout != nullptr && *dropout != 0) {
    return unsupported("model.dropout", "the same text must always be the same tokens; set it to null");
  }
  ATOLL_ASSIGN_OR_RETURN(vocabulary.whole_pieces_first, flag(*model, "ignore_merges", false));
  ATOLL_ASSIGN_OR_RETURN(const IdsByLetters ids, read_vocab(*model, vocabulary));
  return read_merges(*model, ids, vocabulary);
}

// ---- what stands around the model

Status read_normalizer(const json& root, BpeVocabulary& vocabulary) {
  ATOLL_ASSIGN_OR_RETURN(const auto parts, parts_of(root, "normalizer", "normalizers"));
  for (const json* const part : parts) {
    const std::string type = text_or_empty(*part, "type");
    if (type != "NFC") return unsupported(fmt::format("normalizer {}", type), "only NFC is");
    vocabulary.normal_form_c = true;
  }
  return ok_status();
}

Result<SplitPattern> read_split(const json& split) {
  const json* const pattern = find(split, "pattern");
  const std::string regex = pattern == nullptr || !pattern->is_object() ? "" : text_or_empty(*pattern, "Regex");
  const auto known = split_pattern_of_regex(regex);
  if (!known) {
    return unsupported(fmt::format("the pattern \"{}\" of pre_tokenizer Split", regex),
                       "only those of GPT-2, Llama 3, Qwen 2.5 and o200k_base are");
  }
  ATOLL_ASSIGN_OR_RETURN(const bool inverted, flag(split, "invert", false));
  const std::string behavior = text_or_empty(split, "behavior");
  // Either way all pieces stay: each of these patterns matches any text throughout.
  if (!(behavior == "Isolated" && !inverted) && !(behavior == "Removed" && inverted)) {
    return unsupported(fmt::format("behavior {}{} of pre_tokenizer Split", behavior, inverted ? ", inverted," : ""),
                       "only Isolated is");
  }
  return *known;
}

Status read_pre_tokenizer(const json& root, BpeVocabulary& vocabulary) {
  ATOLL_ASSIGN_OR_RETURN(const auto parts, parts_of(root, "pre_tokenizer", "pretokenizers"));
  std::optional<SplitPattern> pattern;
  bool is_byte_level = false;
  for (const json* const part : parts) {
    const std::string type = text_or_empty(*part, "type");
    if (type == "Split" && !pattern && !is_byte_level) {
      ATOLL_ASSIGN_OR_RETURN(pattern, read_split(*part));
    } else if (type == "ByteLevel" && !is_byte_level) {
      is_byte_level = true;
      ATOLL_ASSIGN_OR_RETURN(const bool adds_space, flag(*part, "add_prefix_space", true));
      ATOLL_ASSIGN_OR_RETURN(const bool uses_regex, flag(*part, "use_regex", true));
      if (adds_space)
        return unsupported("add_prefix_space of pre_tokenizer ByteLevel", "tokens would not lead back to the text");
      if (uses_regex == pattern.has_value()) {
        return unsupported(uses_regex ? "pre_tokenizer ByteLevel with use_regex after a Split"
                                      : "pre_tokenizer ByteLevel alone, without use_regex",
                           kFamily);
      }
      if (uses_regex) pattern = SplitPattern::kGpt2;
    } else {
      return unsupported(fmt::format("pre_tokenizer {} in this place", type.empty() ? "without a type" : type),
                         kFamily);
    }
  }
  if (!is_byte_level) return unsupported("a pre_tokenizer without ByteLevel", kFamily);
  vocabulary.pattern = *pattern;
  return ok_status();
}

Status read_decoder(const json& root) {
  ATOLL_ASSIGN_OR_RETURN(const auto parts, parts_of(root, "decoder", "decoders"));
  for (const json* const part : parts) {
    const std::string type = text_or_empty(*part, "type");
    if (type != "ByteLevel") return unsupported(fmt::format("decoder {}", type), kFamily);
  }
  return ok_status();
}

Status read_added_token(const json& token, BpeVocabulary& vocabulary, const IdsByLetters& known) {
  if (!token.is_object()) return bad("an entry of added_tokens is no object");
  AddedToken added{.text = text_or_empty(token, "content")};
  if (added.text.empty() || added.text.size() > AddedTokens::kMaxBytes) {
    return bad(fmt::format("the content of an added token has {} bytes, not 1 to {}", added.text.size(),
                           AddedTokens::kMaxBytes));
  }
  const json* const id = find(token, "id");
  ATOLL_ASSIGN_OR_RETURN(added.id, id_of(id == nullptr ? json() : *id, added.text));
  ATOLL_ASSIGN_OR_RETURN(added.special, flag(token, "special", false));
  ATOLL_ASSIGN_OR_RETURN(added.normalized, flag(token, "normalized", !added.special));
  for (const char* const name : {"single_word", "lstrip", "rstrip"}) {
    ATOLL_ASSIGN_OR_RETURN(const bool set, flag(token, name, false));
    if (set)
      return unsupported(fmt::format("{} of the added token \"{}\"", name, added.text),
                         "only tokens that stand for themselves are");
  }
  const bool is_ascii =
      std::all_of(added.text.begin(), added.text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (vocabulary.normal_form_c && added.normalized && !is_ascii) {
    return unsupported(fmt::format("the added token \"{}\", normalized", added.text),
                       "of a tokenizer with NFC only ASCII is");
  }
  if (const auto same = known.find(added.text); same != known.end()) {
    if (same->second != added.id) {
      return bad(fmt::format("the added token \"{}\" has the id {}, and {} in model.vocab", printable(added.text),
                             added.id, same->second));
    }
    vocabulary.tokens[added.id] = added.text;
  } else {
    ATOLL_RETURN_IF_ERROR(put_token(added.id, added.text, added.text, vocabulary));
  }
  vocabulary.added.push_back(std::move(added));
  return ok_status();
}

Status read_added_tokens(const json& root, BpeVocabulary& vocabulary) {
  const json* const tokens = find(root, "added_tokens");
  if (tokens == nullptr) return ok_status();
  if (!tokens->is_array()) return bad("added_tokens is no list");
  if (tokens->size() > AddedTokens::kMaxTokens)
    return bad(fmt::format("there are more than {} added tokens", AddedTokens::kMaxTokens));
  IdsByLetters known;
  for (const auto& [letters, value] : root.at("model").at("vocab").items())
    known.emplace(letters, value.get<TokenId>());
  for (const json& token : *tokens) {
    ATOLL_RETURN_IF_ERROR(read_added_token(token, vocabulary, known));
    const std::string& text = vocabulary.added.back().text;
    const bool again = std::any_of(vocabulary.added.begin(), vocabulary.added.end() - 1,
                                   [&](const AddedToken& other) { return other.text == text; });
    if (again) return bad(fmt::format("the added token \"{}\" stands twice", printable(text)));
  }
  return ok_status();
}

// A template of one text: [{"SpecialToken": {"id": "<|begin_of_text|>"}}, {"Sequence": {"id": "A"}}].
void read_template(const json& processor, const BpeVocabulary& vocabulary, TokenizerFacts& facts) {
  const json* const single = find(processor, "single");
  if (single == nullptr || !single->is_array() || single->empty() || !single->front().is_object()) return;
  const json* const token = find(single->front(), "SpecialToken");
  if (token == nullptr || !token->is_object()) return;
  const std::string name = text_or_empty(*token, "id");
  for (const AddedToken& added : vocabulary.added) {
    if (added.text != name) continue;
    facts.begin_of_text = added.id;
    facts.begins_with_token = true;
  }
}

Status read_post_processor(const json& root, const BpeVocabulary& vocabulary, TokenizerFacts& facts) {
  ATOLL_ASSIGN_OR_RETURN(const auto parts, parts_of(root, "post_processor", "processors"));
  for (const json* const part : parts) {
    const std::string type = text_or_empty(*part, "type");
    if (type == "TemplateProcessing") {
      read_template(*part, vocabulary, facts);
    } else if (type != "ByteLevel") {  // which moves offsets and no tokens
      return unsupported(fmt::format("post_processor {}", type), "only ByteLevel and TemplateProcessing are");
    }
  }
  return ok_status();
}

}  // namespace

bool looks_like_huggingface(std::string_view content) {
  const std::size_t first = content.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && content[first] == '{';
}

Result<BpeVocabulary> read_huggingface(std::string_view content, TokenizerFacts& facts) {
  ATOLL_ASSIGN_OR_RETURN(const json root, parse_bounded_json(content, kMaxTokenizerFile, kMaxDepth));
  for (const char* const name : {"truncation", "padding"}) {
    if (find(root, name) != nullptr) return unsupported(name, "tokens of all of a text are wanted; set it to null");
  }
  BpeVocabulary vocabulary;
  ATOLL_RETURN_IF_ERROR(read_normalizer(root, vocabulary));
  ATOLL_RETURN_IF_ERROR(read_pre_tokenizer(root, vocabulary));
  ATOLL_RETURN_IF_ERROR(read_decoder(root));
  ATOLL_RETURN_IF_ERROR(read_model(root, vocabulary));
  ATOLL_RETURN_IF_ERROR(read_added_tokens(root, vocabulary));
  ATOLL_RETURN_IF_ERROR(read_post_processor(root, vocabulary, facts));
  return vocabulary;
}

}  // namespace atl
