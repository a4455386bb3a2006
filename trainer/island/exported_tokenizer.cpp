#include "trainer/island/exported_tokenizer.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "net/base/file.h"
#include "net/base/sha256.h"
#include "net/data/chat_template.h"
#include "net/data/run_dataset.h"
#include "net/tokenizer/huggingface_writer.h"
#include "net/tokenizer/load_tokenizer.h"

namespace atl {
namespace {

Result<CompanionFile> tokenizer_file(const std::optional<TokenizerEntry>& entry, const std::filesystem::path& data) {
  if (!entry) return CompanionFile{"tokenizer.json", byte_tokenizer_to_huggingface()};
  const std::filesystem::path path = data / entry->file;
  ATOLL_ASSIGN_OR_RETURN(std::string content, read_file(path, kMaxTokenizerFile));
  if (sha256_hex(as_bytes(content)) == entry->sha256) return CompanionFile{entry->file, std::move(content)};
  return Error{ErrorCode::kCorrupt, fmt::format("{} is not the run's", path.string())};
}

Result<ExportedTokenizer> read_and_write(const RunConfig& run, const std::filesystem::path& data,
                                         const ModelConfig& model) {
  ATOLL_ASSIGN_OR_RETURN(const RunDataFacts facts, facts_of_run_data(run.dataset_json));
  ATOLL_ASSIGN_OR_RETURN(CompanionFile file, tokenizer_file(facts.tokenizer_file, data));
  ATOLL_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, read_tokenizer(file.content));
  TokenizerConfigFacts about{.longest = model.max_position_embeddings, .pad = model.pad_token_id};
  if (facts.chat_template == kLlama3ChatTemplateName) about.chat_template = kLlama3ChatTemplate;
  CompanionFile config{"tokenizer_config.json", tokenizer_config(*tokenizer, about)};
  ExportedTokenizer exported{{std::move(file), std::move(config)}, {}};
  // Where transformers looks first; older programs read the other.
  if (!about.chat_template.empty()) exported.files.push_back({kChatTemplateFile, std::string(about.chat_template)});
  for (const TokenId end : tokenizer->turn_ends()) exported.turn_ends.push_back(static_cast<std::int64_t>(end));
  return exported;
}

}  // namespace

ExportedTokenizer exported_tokenizer(const RunConfig& run, const std::filesystem::path& data,
                                     const ModelConfig& model) {
  auto exported = read_and_write(run, data, model);
  if (exported.ok()) return std::move(*exported);
  spdlog::warn("export without tokenizer: error=\"{}\"", exported.error().message);
  return {};
}

}  // namespace atl
