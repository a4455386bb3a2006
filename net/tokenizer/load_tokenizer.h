// A tokenizer of a file: HuggingFace's tokenizer.json (huggingface_file.h), tiktoken's ranks, Llama 3's tokenizer.model
// among them (tiktoken_file.h), a model of SentencePiece (sentencepiece_tokenizer.h); or of the name "bytes". Files
// come from strangers: bounded, checked, and what cannot be done exactly is refused by name. Any thread.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/tokenizer/split_pattern.h"
#include "net/tokenizer/tokenizer.h"

namespace atl {

inline constexpr std::size_t kMaxTokenizerFile = std::size_t{64} << 20;  // bytes; the largest in use have 35 million

// `pattern`: of a tiktoken file that is none of the known encodings; kInvalidArgument with all others, which say their
// own. A directory is one that has a tokenizer.json or a tokenizer.model.
Result<std::unique_ptr<Tokenizer>> load_tokenizer(const std::filesystem::path& file,
                                                  std::optional<SplitPattern> pattern = std::nullopt);

// Of the directory of a model; null where neither of these files lies in it.
Result<std::unique_ptr<Tokenizer>> tokenizer_beside(const std::filesystem::path& directory);

// What is in the file that load_tokenizer would read; nothing when that is the byte-level tokenizer.
Result<std::optional<std::string>> read_tokenizer_file(const std::filesystem::path& file);

// Of such a file's content.
Result<std::unique_ptr<Tokenizer>> read_tokenizer(std::string_view content,
                                                  std::optional<SplitPattern> pattern = std::nullopt);

}  // namespace atl
