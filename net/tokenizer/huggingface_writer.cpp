#include "net/tokenizer/huggingface_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "net/base/json_text.h"
#include "net/tokenizer/byte_letters.h"
#include "net/tokenizer/byte_tokenizer.h"
#include "net/tokenizer/huggingface_file.h"
#include "net/tokenizer/load_tokenizer.h"
#include "net/tokenizer/sentencepiece_tokenizer.h"
#include "net/tokenizer/tiktoken_file.h"

namespace atl {
namespace {

using nlohmann::json;

constexpr std::string_view kLlama3Begin = "<|begin_of_text|>";
constexpr const char* kTokenizerJson = "tokenizer.json";
constexpr const char* kSentencePieceModel = "tokenizer.model";

// Each way to make a token of two others; by the token's rank, then by those of its halves.
Result<json> merges_of(const BpeVocabulary& vocabulary) {
  std::unordered_map<std::string_view, TokenId> ranks;
  for (const TokenId id : vocabulary.mergeable) ranks.emplace(vocabulary.tokens[id], id);
  json merges = json::array();
  std::vector<std::pair<TokenId, TokenId>> ways;
  for (const TokenId id : vocabulary.mergeable) {
    const std::string_view token = vocabulary.tokens[id];
    ways.clear();
    for (std::size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = ranks.find(token.substr(0, cut)), right = ranks.find(token.substr(cut));
      if (left != ranks.end() && right != ranks.end()) ways.emplace_back(left->second, right->second);
    }
    std::sort(ways.begin(), ways.end());
    for (const auto& [left, right] : ways) {
      merges.push_back({letters_of_bytes(vocabulary.tokens[left]), letters_of_bytes(vocabulary.tokens[right])});
    }
    if (merges.size() > kMaxMerges) {
      return Error{ErrorCode::kInvalidArgument, "its tokens can be made in too many ways; take its tokenizer.json"};
    }
  }
  return merges;
}

json pre_tokenizer_of(SplitPattern pattern) {
  json byte_level = {{"type", "ByteLevel"},
                     {"add_prefix_space", false},
                     {"trim_offsets", true},
                     {"use_regex", pattern == SplitPattern::kGpt2}};
  if (pattern == SplitPattern::kGpt2) return byte_level;
  const json split = {{"type", "Split"},
                      {"pattern", {{"Regex", regex_of_split_pattern(pattern)}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  return {{"type", "Sequence"}, {"pretokenizers", {split, byte_level}}};
}

json post_processor_of(const BpeVocabulary& vocabulary) {
  json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", false}, {"use_regex", true}};
  const auto begin = std::find_if(vocabulary.added.begin(), vocabulary.added.end(),
                                  [](const AddedToken& token) { return token.text == kLlama3Begin; });
  if (vocabulary.pattern != SplitPattern::kLlama3 || begin == vocabulary.added.end()) return byte_level;
  const auto special = [&](int type) { return json{{"SpecialToken", {{"id", begin->text}, {"type_id", type}}}}; };
  const auto text = [](const char* id, int type) { return json{{"Sequence", {{"id", id}, {"type_id", type}}}}; };
  const json tokens = {{begin->text, {{"id", begin->text}, {"ids", {begin->id}}, {"tokens", {begin->text}}}}};
  const json once = {{"type", "TemplateProcessing"},
                     {"single", {special(0), text("A", 0)}},
                     {"pair", {special(0), text("A", 0), special(1), text("B", 1)}},
                     {"special_tokens", tokens}};
  return {{"type", "Sequence"}, {"processors", {byte_level, once}}};
}

// By rising id, and no number left out behind the vocabulary: HuggingFace's program numbers them itself, one after the
// other, whatever the file says. cl100k_base has such holes.
std::vector<AddedToken> added_without_holes(const BpeVocabulary& vocabulary) {
  std::vector<AddedToken> added = vocabulary.added;
  for (TokenId id = 0; id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.tokens[id].empty()) {
      added.push_back({.text = fmt::format("<|unused_{}|>", id), .id = id, .special = true});
    }
  }
  std::sort(added.begin(), added.end(), [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  return added;
}

// A vocabulary with ranks, or without any merge.
Result<std::string> write_vocabulary(const BpeVocabulary& vocabulary) {
  ATOLL_ASSIGN_OR_RETURN(json merges, merges_of(vocabulary));
  json vocab = json::object(), added = json::array();
  for (const TokenId id : vocabulary.mergeable) vocab[letters_of_bytes(vocabulary.tokens[id])] = id;
  for (const AddedToken& token : added_without_holes(vocabulary)) {
    added.push_back({{"id", token.id},
                     {"content", token.text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", token.normalized},
                     {"special", token.special}});
  }
  const json document = {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", std::move(added)},
      {"normalizer", nullptr},
      {"pre_tokenizer", pre_tokenizer_of(vocabulary.pattern)},
      {"post_processor", post_processor_of(vocabulary)},
      {"decoder", {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}}},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"ignore_merges", vocabulary.whole_pieces_first},
        {"vocab", std::move(vocab)},
        {"merges", std::move(merges)}}}};
  return dump_json(document);
}

}  // namespace

Result<TokenizerFile> to_huggingface(std::string_view content, std::optional<SplitPattern> pattern) {
  const bool is_sentencepiece = looks_like_sentencepiece(content);
  TokenizerFile file{is_sentencepiece ? kSentencePieceModel : kTokenizerJson, std::string(content), nullptr};
  if (!is_sentencepiece && !looks_like_huggingface(content) && looks_like_tiktoken(content)) {
    ATOLL_ASSIGN_OR_RETURN(const BpeVocabulary vocabulary, read_tiktoken(content, pattern));
    ATOLL_ASSIGN_OR_RETURN(file.content, write_vocabulary(vocabulary));
    pattern.reset();  // which is in the file now
  }
  // What it refuses by name is refused here, too.
  ATOLL_ASSIGN_OR_RETURN(file.tokenizer, read_tokenizer(file.content, pattern));
  return file;
}

std::string byte_tokenizer_to_huggingface() {
  const ByteTokenizer bytes;
  BpeVocabulary vocabulary;
  vocabulary.tokens.resize(bytes.facts().vocab_size);
  for (TokenId id = 0; id < 256; ++id) {
    vocabulary.tokens[id] = std::string(1, static_cast<char>(id));
    vocabulary.mergeable.push_back(id);
  }
  for (const SpecialToken& token : bytes.facts().special_tokens) {
    vocabulary.tokens[token.id] = token.name;
    vocabulary.added.push_back({.text = token.name, .id = token.id, .special = true});
  }
  return write_vocabulary(vocabulary).value();  // of 256 tokens of a byte each: no merges
}

std::string tokenizer_config(const Tokenizer& tokenizer, const TokenizerConfigFacts& model) {
  const TokenizerFacts& facts = tokenizer.facts();
  const auto name_of = [&](std::optional<std::int64_t> id) -> json {
    const auto found = std::find_if(facts.special_tokens.begin(), facts.special_tokens.end(),
                                    [&](const SpecialToken& token) { return id && token.id == *id; });
    return found == facts.special_tokens.end() ? json() : json(found->name);
  };
  const bool fast = facts.kind != kSentencePieceKind;
  const std::vector<TokenId> turn_ends = tokenizer.turn_ends();
  const bool ends_turns = !model.chat_template.empty() && !turn_ends.empty();
  json config = {{"tokenizer_class", fast ? "PreTrainedTokenizerFast" : "LlamaTokenizer"},
                 {"clean_up_tokenization_spaces", false},
                 {"model_max_length", model.longest},
                 {"bos_token", name_of(facts.begin_of_text ? facts.begin_of_text : facts.end_of_text)},
                 {"eos_token", name_of(ends_turns ? turn_ends.front() : facts.end_of_text)}};
  if (const json pad = name_of(model.pad); !pad.is_null()) config["pad_token"] = pad;
  if (!model.chat_template.empty()) config["chat_template"] = model.chat_template;
  return dump_json(config) + "\n";
}

}  // namespace atl
