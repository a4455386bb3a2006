#include "net/tokenizer/split_pattern.h"

#include <array>
#include <utility>

#include "net/tokenizer/split_scanner.h"

namespace atl {
namespace {

constexpr std::array kNames{
    std::pair{SplitPattern::kGpt2, std::string_view("gpt2")},
    std::pair{SplitPattern::kCl100kBase, std::string_view("cl100k_base")},
    std::pair{SplitPattern::kLlama3, std::string_view("llama3")},
    std::pair{SplitPattern::kQwen2, std::string_view("qwen2")},
    std::pair{SplitPattern::kO200kBase, std::string_view("o200k_base")},
};

// As tokenizer.json files and tiktoken write them; of each pattern first the one that is written.
constexpr std::array kRegexes{
    std::pair{SplitPattern::kGpt2,
              std::string_view(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)")},
    std::pair{SplitPattern::kGpt2,
              std::string_view(R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)")},
    // tiktoken's own has possessive quantifiers, of which Oniguruma takes {1,3}+ for something else.
    std::pair{SplitPattern::kCl100kBase,
              std::string_view(R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
                               R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s+\z|\s*[\r\n]|\s+(?!\S)|\s)")},
    std::pair{SplitPattern::kLlama3,
              std::string_view(R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
                               R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)")},
    std::pair{SplitPattern::kQwen2, std::string_view(R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
                                                     R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)")},
    std::pair{SplitPattern::kO200kBase,
              std::string_view(R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
                               R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
                               R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
                               R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
                               R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)")},
};

template <SplitPattern kPattern>
std::vector<std::size_t> ends_of(std::string_view text) {
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(text.data());
  const std::uint8_t* const end = begin + text.size();
  const SplitScanner scanner(end);
  std::vector<std::size_t> ends;
  for (const std::uint8_t* at = begin; at < end;) {
    at = scanner.piece_end<kPattern>(at);
    ends.push_back(static_cast<std::size_t>(at - begin));
  }
  return ends;
}

}  // namespace

std::string_view split_pattern_name(SplitPattern pattern) {
  for (const auto& [known, name] : kNames) {
    if (known == pattern) return name;
  }
  return "unknown";
}

std::optional<SplitPattern> parse_split_pattern(std::string_view name) {
  for (const auto& [pattern, known] : kNames) {
    if (known == name) return pattern;
  }
  return std::nullopt;
}

std::optional<SplitPattern> split_pattern_of_regex(std::string_view regex) {
  for (const auto& [pattern, known] : kRegexes) {
    if (known == regex) return pattern;
  }
  return std::nullopt;
}

std::string_view regex_of_split_pattern(SplitPattern pattern) {
  for (const auto& [known, regex] : kRegexes) {
    if (known == pattern) return regex;
  }
  return {};
}

std::vector<std::size_t> split_ends(SplitPattern pattern, std::string_view text) {
  switch (pattern) {
    case SplitPattern::kGpt2: return ends_of<SplitPattern::kGpt2>(text);
    case SplitPattern::kCl100kBase: return ends_of<SplitPattern::kCl100kBase>(text);
    case SplitPattern::kLlama3: return ends_of<SplitPattern::kLlama3>(text);
    case SplitPattern::kQwen2: return ends_of<SplitPattern::kQwen2>(text);
    case SplitPattern::kO200kBase: return ends_of<SplitPattern::kO200kBase>(text);
  }
  return {};
}

}  // namespace atl
