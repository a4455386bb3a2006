#include "net/tokenizer/load_tokenizer.h"

#include <fmt/format.h>

#include "net/base/file.h"
#include "net/base/sha256.h"
#include "net/tokenizer/bpe_tokenizer.h"
#include "net/tokenizer/byte_tokenizer.h"
#include "net/tokenizer/huggingface_file.h"
#include "net/tokenizer/sentencepiece_tokenizer.h"
#include "net/tokenizer/tiktoken_file.h"

namespace atl {
namespace {

Result<BpeVocabulary> read_vocabulary(std::string_view content, std::optional<SplitPattern> pattern,
                                      TokenizerFacts& facts) {
  if (looks_like_huggingface(content)) {
    if (pattern) {
      return Error{ErrorCode::kInvalidArgument, "a tokenizer.json says itself by which pattern text is cut; name none"};
    }
    return read_huggingface(content, facts);
  }
  if (looks_like_tiktoken(content)) return read_tiktoken(content, pattern);
  return Error{
      ErrorCode::kInvalidArgument,
      "it is neither a tokenizer.json, nor a file of tiktoken (base64 and a rank in each line), nor a model of "
      "SentencePiece"};
}

std::filesystem::path file_within(const std::filesystem::path& directory) {
  std::error_code error;
  for (const char* const name : {"tokenizer.json", "tokenizer.model"}) {
    if (std::filesystem::is_regular_file(directory / name, error)) return directory / name;
  }
  return directory / "tokenizer.json";
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> read_tokenizer(std::string_view content, std::optional<SplitPattern> pattern) {
  TokenizerFacts facts;
  facts.sha256 = sha256_hex(as_bytes(content));
  if (looks_like_sentencepiece(content)) {
    if (!pattern) return read_sentencepiece(content, std::move(facts));
    return Error{ErrorCode::kInvalidArgument, "a model of SentencePiece cuts text by no pattern; name none"};
  }
  ATOLL_ASSIGN_OR_RETURN(BpeVocabulary vocabulary, read_vocabulary(content, pattern, facts));
  return std::unique_ptr<Tokenizer>(BpeTokenizer::make(std::move(facts), std::move(vocabulary)));
}

Result<std::optional<std::string>> read_tokenizer_file(const std::filesystem::path& given) {
  std::error_code error;
  if (given == kByteTokenizerName && !std::filesystem::exists(given, error)) return std::optional<std::string>();
  const std::filesystem::path file = std::filesystem::is_directory(given, error) ? file_within(given) : given;
  ATOLL_ASSIGN_OR_RETURN(std::string content, read_file(file, kMaxTokenizerFile));
  return std::optional(std::move(content));
}

Result<std::unique_ptr<Tokenizer>> load_tokenizer(const std::filesystem::path& file,
                                                  std::optional<SplitPattern> pattern) {
  ATOLL_ASSIGN_OR_RETURN(const std::optional<std::string> content, read_tokenizer_file(file));
  if (!content) return std::unique_ptr<Tokenizer>(std::make_unique<ByteTokenizer>());
  auto made = read_tokenizer(*content, pattern);
  if (!made.ok()) return made.error().with_context(fmt::format("{} is no tokenizer that can be used", file.string()));
  return made;
}

Result<std::unique_ptr<Tokenizer>> tokenizer_beside(const std::filesystem::path& directory) {
  std::error_code error;
  if (!std::filesystem::exists(file_within(directory), error)) return std::unique_ptr<Tokenizer>();
  return load_tokenizer(directory);
}

}  // namespace atl
