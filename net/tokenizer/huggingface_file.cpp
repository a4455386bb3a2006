#include "net/tokenizer/huggingface_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "net/base/json_text.h"
#include "net/base/printable.h"
#include "net/tokenizer/byte_letters.h"
#include "net/tokenizer/huggingface_json.h"
#include "net/tokenizer/huggingface_pipeline.h"
#include "net/tokenizer/load_tokenizer.h"

namespace atl {
namespace {

using huggingface::bad;
using huggingface::find;
using huggingface::flag;
using huggingface::parts_of;
using huggingface::text_or_empty;
using huggingface::unsupported;
using nlohmann::json;

constexpr int kMaxDepth = 16;

constexpr std::string_view kFamily =
    "only models of BPE are (GPT-2, Llama, Qwen, Mistral, Gemma); choose one with such a tokenizer";

Result<TokenId> id_of(const json& value, std::string_view whose) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= kMaxVocabulary) {
    return bad(fmt::format("the id of the token \"{}\" is no number below {}", printable(whose), kMaxVocabulary));
  }
  return value.get<TokenId>();
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
  BpeAlphabet& alphabet = vocabulary.alphabet;
  alphabet.byte_ids.fill(kNoByteToken);
  for (const auto& [letters, value] : vocab->items()) {
    ATOLL_ASSIGN_OR_RETURN(const TokenId id, id_of(value, letters));
    ids.emplace(letters, id);
    const auto bytes = alphabet.of_bytes ? bytes_of_letters(letters) : std::optional(letters);
    ATOLL_RETURN_IF_ERROR(put_token(id, bytes.value_or(letters), letters, vocabulary));
    if (!bytes) continue;  // text never comes to it, which is all in the letters of bytes by then
    vocabulary.mergeable.push_back(id);
    if (alphabet.of_bytes && bytes->size() == 1) alphabet.byte_ids[static_cast<unsigned char>(bytes->front())] = id;
  }
  return ids;
}

// What becomes of characters without a token.
Status read_unknown(const json& model, const IdsByLetters& ids, BpeAlphabet& alphabet) {
  ATOLL_ASSIGN_OR_RETURN(alphabet.falls_back, flag(model, "byte_fallback", false));
  ATOLL_ASSIGN_OR_RETURN(alphabet.fuses_unknown, flag(model, "fuse_unk", false));
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto found = ids.find(fmt::format("<0x{:02X}>", byte));
    alphabet.fallbacks[byte] = found == ids.end() ? kNoByteToken : found->second;
  }
  const bool falls_back_always = alphabet.falls_back && std::find(alphabet.fallbacks.begin(), alphabet.fallbacks.end(),
                                                                  kNoByteToken) == alphabet.fallbacks.end();
  const std::string unknown = text_or_empty(model, "unk_token");
  if (unknown.empty()) return ok_status();
  if (const auto found = ids.find(unknown); found != ids.end()) {
    alphabet.unknown = found->second;
  } else if (!falls_back_always && !(alphabet.of_bytes && alphabet.has_all_bytes())) {
    return bad(fmt::format("model.unk_token \"{}\" is not in model.vocab, and not all text has other tokens",
                           printable(unknown)));
  }
  return ok_status();
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
  if (model == nullptr || !model->is_object())
    return bad(
        "it has no model, so it is no tokenizer.json; a tekken.json, vocab.json or tokenizer_config.json is not "
        "enough: take the tokenizer.json of the model");
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
  ATOLL_RETURN_IF_ERROR(read_unknown(*model, ids, vocabulary.alphabet));
  return read_merges(*model, ids, vocabulary);
}

// ---- what stands around the model

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
  ATOLL_ASSIGN_OR_RETURN(added.single_word, flag(token, "single_word", false));
  ATOLL_ASSIGN_OR_RETURN(added.takes_left, flag(token, "lstrip", false));
  ATOLL_ASSIGN_OR_RETURN(added.takes_right, flag(token, "rstrip", false));
  if (added.normalized) {
    RegexRoom room;
    std::string changed;
    auto made = vocabulary.normalizer.apply(added.text, room, changed);
    if (!made.ok()) return made.error().with_context(fmt::format("the added token \"{}\"", printable(added.text)));
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
  std::unordered_set<std::string> texts;
  for (const json& token : *tokens) {
    ATOLL_RETURN_IF_ERROR(read_added_token(token, vocabulary, known));
    const std::string& text = vocabulary.added.back().text;
    if (!texts.insert(text).second) return bad(fmt::format("the added token \"{}\" stands twice", printable(text)));
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
  ATOLL_RETURN_IF_ERROR(huggingface::read_normalizer(root, vocabulary));
  ATOLL_RETURN_IF_ERROR(huggingface::read_pre_tokenizer(root, vocabulary));
  ATOLL_RETURN_IF_ERROR(huggingface::read_decoder(root, vocabulary));
  ATOLL_RETURN_IF_ERROR(read_model(root, vocabulary));
  ATOLL_RETURN_IF_ERROR(read_added_tokens(root, vocabulary));
  ATOLL_RETURN_IF_ERROR(read_post_processor(root, vocabulary, facts));
  return vocabulary;
}

}  // namespace atl
