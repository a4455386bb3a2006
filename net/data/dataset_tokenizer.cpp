#include "net/data/dataset_tokenizer.h"

#include <fmt/format.h>

#include "net/base/printable.h"
#include "net/tokenizer/byte_tokenizer.h"
#include "net/tokenizer/huggingface_writer.h"
#include "net/tokenizer/load_tokenizer.h"

namespace atl {
namespace {

// The first few special tokens, for whoever has to choose one.
std::string names_of(const TokenizerFacts& facts) {
  constexpr std::size_t kShown = 6;
  std::string names;
  for (std::size_t i = 0; i < facts.special_tokens.size() && i < kShown; ++i) {
    names += fmt::format("{}'{}'", i == 0 ? "" : ", ", printable(facts.special_tokens[i].name));
  }
  if (facts.special_tokens.size() > kShown) names += fmt::format(" and {} more", facts.special_tokens.size() - kShown);
  return names;
}

Result<TokenId> end_of_documents(const Tokenizer& tokenizer, const std::string& name) {
  const TokenizerFacts& facts = tokenizer.facts();
  const std::optional<TokenId> id = name.empty() ? facts.end_of_text : tokenizer.special_token(name);
  if (id) return *id;
  if (facts.special_tokens.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "the tokenizer has no special token that could stand between documents; add one to its added_tokens"};
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{}; name one of the tokenizer's special tokens by --end-of-text: {}",
                           name.empty() ? "which token ends a document is not known"
                                        : fmt::format("'{}' is no special token", printable(name)),
                           names_of(facts))};
}

}  // namespace

DatasetTokenizer byte_dataset_tokenizer() {
  auto bytes = std::make_shared<const ByteTokenizer>();
  const TokenId end = bytes->facts().end_of_text.value();
  return {.tokenizer = std::move(bytes), .begin_of_text = {}, .end_of_text = end, .file_name = {}, .file = {}};
}

Result<DatasetTokenizer> load_dataset_tokenizer(const std::filesystem::path& file, std::optional<SplitPattern> pattern,
                                                const std::string& end_of_text) {
  ATOLL_ASSIGN_OR_RETURN(const std::optional<std::string> content, read_tokenizer_file(file));
  if (!content) return byte_dataset_tokenizer();
  auto written = to_huggingface(*content, pattern);
  if (!written.ok()) return written.error().with_context(fmt::format("{} cannot be used", file.string()));
  // Of what islands will read, so that nobody can make other tokens of the same text.
  const Tokenizer& tokenizer = *written->tokenizer;
  ATOLL_ASSIGN_OR_RETURN(const TokenId end, end_of_documents(tokenizer, end_of_text));
  const TokenizerFacts& facts = tokenizer.facts();
  const std::optional<TokenId> begin = facts.begins_with_token ? facts.begin_of_text : std::nullopt;
  return DatasetTokenizer{.tokenizer = std::move(written->tokenizer),
                          .begin_of_text = begin,
                          .end_of_text = end,
                          .file_name = std::move(written->name),
                          .file = std::move(written->content)};
}

}  // namespace atl
