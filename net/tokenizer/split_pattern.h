// The patterns by which byte-level BPE cuts text into pieces before it merges bytes within each: no token spans two.
// The regular expressions of five families of tokenizers are known, and written out as scanners of characters
// (split_scanner.h): an engine for regular expressions would take most of the time. Others are refused.
// tests/net/tokenizer compares the scanners with PCRE2.
//
// Pure functions; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace atl {

enum class SplitPattern {
  kGpt2,        // GPT-2, r50k_base, p50k_base; HuggingFace's ByteLevel with use_regex
  kCl100kBase,  // tiktoken's cl100k_base
  kLlama3,      // Llama 3
  kQwen2,       // Qwen 2, 2.5 and 3: digits one by one
  kO200kBase,   // tiktoken's o200k_base: words are cut where a capital follows a small letter
};

std::string_view split_pattern_name(SplitPattern pattern);  // "gpt2", "cl100k_base", "llama3", "qwen2", "o200k_base"
std::optional<SplitPattern> parse_split_pattern(std::string_view name);

// The pattern whose regular expression this is, as files of models write it: known spellings, letter by letter.
std::optional<SplitPattern> split_pattern_of_regex(std::string_view regex);
// As HuggingFace's tokenizers read it (Oniguruma).
std::string_view regex_of_split_pattern(SplitPattern pattern);

// Where each piece of `text` ends, in bytes; the last is text.size(). For tests and tools: encoders cut as they go.
std::vector<std::size_t> split_ends(SplitPattern pattern, std::string_view text);

}  // namespace atl
