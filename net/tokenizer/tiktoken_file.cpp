#include "net/tokenizer/tiktoken_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_set>

namespace atl {
namespace {

constexpr std::size_t kMaxLineBytes = kMaxTokenBytes / 3 * 4 + 32;

constexpr std::array<std::int8_t, 256> kBase64 = [] {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<std::int8_t>(i);
  }
  return values;
}();

// RFC 4648, section 4, padded. Empty: it is none.
std::optional<std::string> decode_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  std::uint32_t window = 0;
  int bits = 0;
  for (const char digit : text.substr(0, text.size() - padding)) {
    const int value = kBase64[static_cast<unsigned char>(digit)];
    if (value < 0) return std::nullopt;
    window = window << 6 | static_cast<std::uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(window >> bits & 0xFFu);
  }
  return bytes;
}

// The special tokens that tiktoken (tiktoken_ext/openai_public.py), Llama 3 (llama_models/llama3/tokenizer.py) and Qwen
// give to their encodings, and how many ranks the published files have.
struct Encoding {
  SplitPattern pattern;
  std::uint32_t ranks;
};
constexpr std::array kEncodings{
    Encoding{SplitPattern::kGpt2, 50256},       Encoding{SplitPattern::kCl100kBase, 100256},
    Encoding{SplitPattern::kLlama3, 128000},    Encoding{SplitPattern::kQwen2, 151643},
    Encoding{SplitPattern::kO200kBase, 199998},
};
// A reserved token has the number that follows those that are named.
std::vector<std::string> llama3_special_tokens() {
  std::vector<std::string> names{"<|begin_of_text|>",
                                 "<|end_of_text|>",
                                 "<|reserved_special_token_0|>",
                                 "<|reserved_special_token_1|>",
                                 "<|finetune_right_pad_id|>",
                                 "<|step_id|>",
                                 "<|start_header_id|>",
                                 "<|end_header_id|>",
                                 "<|eom_id|>",
                                 "<|eot_id|>",
                                 "<|python_tag|>",
                                 "<|image|>"};
  constexpr std::size_t kCount = 256;
  for (int i = 2; names.size() < kCount; ++i) names.push_back(fmt::format("<|reserved_special_token_{}|>", i));
  return names;
}

// `base`: how many tokens have ranks. Of files that are smaller than the published ones, special tokens follow at once.
std::vector<AddedToken> special_tokens_of(SplitPattern pattern, std::uint32_t base) {
  std::vector<AddedToken> tokens;
  const auto add = [&](std::string name, std::uint32_t offset) {
    tokens.push_back({.text = std::move(name), .id = base + offset, .special = true});
  };
  switch (pattern) {
    case SplitPattern::kGpt2: add("<|endoftext|>", 0); break;
    case SplitPattern::kCl100kBase:  // 100256 is none
      add("<|endoftext|>", 1);
      add("<|fim_prefix|>", 2);
      add("<|fim_middle|>", 3);
      add("<|fim_suffix|>", 4);
      add("<|endofprompt|>", 20);
      break;
    case SplitPattern::kLlama3:
      for (std::string& name : llama3_special_tokens()) add(std::move(name), static_cast<std::uint32_t>(tokens.size()));
      break;
    case SplitPattern::kQwen2:
      add("<|endoftext|>", 0);
      add("<|im_start|>", 1);
      add("<|im_end|>", 2);
      break;
    case SplitPattern::kO200kBase:  // 199998 is none
      add("<|endoftext|>", 1);
      add("<|endofprompt|>", 20);
      break;
  }
  return tokens;
}

struct Line {
  std::string bytes;
  std::uint32_t rank = 0;
};

Result<Line> read_line(std::string_view text) {
  const auto bad = [](std::string_view why) { return Error{ErrorCode::kInvalidArgument, std::string(why)}; };
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (text.size() > kMaxLineBytes) return bad(fmt::format("a token is longer than {} bytes", kMaxTokenBytes));
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return bad("it is not base64, a space and a rank");
  const auto bytes = decode_base64(text.substr(0, space));
  if (!bytes || bytes->empty()) return bad("what stands before the space is not base64");
  Line line{*bytes, 0};
  const std::string_view number = text.substr(space + 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), line.rank);
  if (number.empty() || error != std::errc() || end != number.data() + number.size())
    return bad("its rank is no number");
  if (line.rank >= kMaxVocabulary) return bad(fmt::format("its rank is not below {}", kMaxVocabulary));
  return line;
}

Status add_line(std::string_view text, BpeVocabulary& vocabulary, std::unordered_set<std::string>& known) {
  ATOLL_ASSIGN_OR_RETURN(Line line, read_line(text));
  if (line.rank >= vocabulary.tokens.size()) vocabulary.tokens.resize(line.rank + 1);
  if (!vocabulary.tokens[line.rank].empty()) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("rank {} stands twice", line.rank)};
  }
  if (!known.insert(line.bytes).second) return Error{ErrorCode::kInvalidArgument, "its token stands twice"};
  vocabulary.tokens[line.rank] = std::move(line.bytes);
  return ok_status();
}

Status finish_tokens(BpeVocabulary& vocabulary) {
  std::array<bool, 256> found{};
  for (TokenId id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    if (token.empty()) continue;
    vocabulary.mergeable.push_back(id);
    if (token.size() != 1) continue;
    vocabulary.alphabet.byte_ids[static_cast<unsigned char>(token[0])] = id;
    found[static_cast<unsigned char>(token[0])] = true;
  }
  const auto missing = std::find(found.begin(), found.end(), false);
  if (missing == found.end()) return ok_status();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("the byte 0x{:02x} is no token, so that not every text could be encoded; get the file again",
                           missing - found.begin())};
}

}  // namespace

bool looks_like_tiktoken(std::string_view content) { return read_line(content.substr(0, content.find('\n'))).ok(); }

Result<BpeVocabulary> read_tiktoken(std::string_view content, std::optional<SplitPattern> pattern) {
  BpeVocabulary vocabulary;
  vocabulary.has_ranks = true;
  vocabulary.whole_pieces_first = true;
  std::unordered_set<std::string> known;
  for (std::size_t number = 1; !content.empty(); ++number) {
    const std::size_t newline = content.find('\n');
    const std::string_view line = content.substr(0, newline);
    content.remove_prefix(newline == std::string_view::npos ? content.size() : newline + 1);
    if (line.empty()) continue;
    if (const Status added = add_line(line, vocabulary, known); !added.ok()) {
      return added.error().with_context(fmt::format("line {}", number));
    }
  }
  ATOLL_RETURN_IF_ERROR(finish_tokens(vocabulary));
  const auto base = static_cast<std::uint32_t>(vocabulary.tokens.size());
  if (!pattern) {
    const auto* const same =
        std::find_if(kEncodings.begin(), kEncodings.end(), [&](const Encoding& e) { return e.ranks == base; });
    if (same == kEncodings.end()) {
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format(
              "it has {} tokens, as no known encoding has: say by which pattern text is cut (gpt2, cl100k_base, "
              "llama3, qwen2 or o200k_base)",
              base)};
    }
    pattern = same->pattern;
  }
  vocabulary.pattern = *pattern;
  vocabulary.added = special_tokens_of(*pattern, base);
  for (const AddedToken& token : vocabulary.added) {
    if (vocabulary.tokens.size() <= token.id) vocabulary.tokens.resize(token.id + 1);
    vocabulary.tokens[token.id] = token.text;
  }
  if (vocabulary.tokens.size() > kMaxVocabulary) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("it has more than {} tokens", kMaxVocabulary)};
  }
  return vocabulary;
}

}  // namespace atl
