#include "app/cli/run_tokenizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/cli/text.h"
#include "net/base/printable.h"
#include "net/data/token_shard.h"
#include "net/data/tokenizer_of_data.h"
#include "net/tokenizer/byte_tokenizer.h"
#include "net/tokenizer/compare_tokenizers.h"

namespace atl {
namespace {

constexpr std::size_t kShownTokens = 5;
constexpr std::int64_t kMostPadding = 255;  // tokens that a vocabulary of bytes is rounded up by

std::string shown(const std::vector<std::string>& names) {
  const std::size_t count = std::min(names.size(), kShownTokens);
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(count), ", "));
  if (count < names.size()) text += fmt::format(" and {} more", names.size() - count);
  return printable(text);
}

std::string special_tokens(const std::vector<std::string>& names) {
  return format_number_of(names.size(), "special token") + fmt::format(" ({})", shown(names));
}

std::vector<std::string> notes_of(const TokenizerComparison& compared) {
  std::vector<std::string> notes;
  if (!compared.only_in_one.empty()) {
    notes.push_back(fmt::format("the dataset's tokenizer has {} more than the model's: it begins to learn them",
                                special_tokens(compared.only_in_one)));
  }
  if (!compared.only_in_other.empty()) {
    notes.push_back(fmt::format("the model's tokenizer has {} more than the dataset's, which exports will bring",
                                special_tokens(compared.only_in_other)));
  }
  return notes;
}

using Notes = std::vector<std::string>;

Result<Notes> unless_forced(bool force, std::string what, std::string_view instead) {
  if (force) return Notes{what + "; it is taken all the same, as --force says"};
  return Error{ErrorCode::kInvalidArgument, fmt::format("{}; {}, or go on all the same with --force", what, instead)};
}

}  // namespace

Result<Notes> check_run_tokenizer(const BaseModel& model, const HubDataSource& data, bool force) {
  ATOLL_ASSIGN_OR_RETURN(const DatasetManifest manifest, DatasetManifest::load(data.directory));
  const std::string where = data.directory.string();
  auto of_model = model.tokenizer();
  auto of_data = tokenizer_of_data(manifest.tokenizer, manifest.tokenizer_file, data.directory);
  for (const auto* one : {&of_model, &of_data}) {
    if (one->ok()) continue;
    return unless_forced(force,
                         fmt::format("whether the dataset in {} was made with the tokenizer of {} cannot be told: {}",
                                     where, model.name(), one->error().message),
                         "put the right file there");
  }
  if (*of_model == nullptr || *of_data == nullptr) {
    const std::int64_t padding = model.config().vocab_size - kByteVocabSize;
    if (manifest.tokenizer == kByteTokenizerName && padding >= 0 && padding <= kMostPadding) return Notes();
    return Notes{
        fmt::format("no tokenizer lies beside {}: that the dataset in {} was made with the same one is taken "
                    "on trust",
                    *of_model == nullptr ? model.name() : "the data", where)};
  }
  const TokenizerComparison compared = compare_tokenizers({**of_data, "the dataset's"}, {**of_model, "the model's"});
  if (compared.difference.empty()) return notes_of(compared);
  return unless_forced(force,
                       fmt::format("the dataset in {} was made with another tokenizer than that of {}: {}", where,
                                   model.name(), compared.difference),
                       "prepare the data with the model's: atoll data prepare --tokenizer DIR");
}

Result<Notes> check_published_tokenizer(const PublishedManifest& published, const HubDataSource& data, bool force) {
  ATOLL_ASSIGN_OR_RETURN(const DatasetManifest manifest, DatasetManifest::load(data.directory));
  const std::string where = data.directory.string();
  if (published.tokenizer.empty()) {
    return Notes{
        fmt::format("this state does not say its tokenizer: that the dataset in {} was made with the same one "
                    "is taken on trust",
                    where)};
  }
  const std::string sha256 = manifest.tokenizer_file ? manifest.tokenizer_file->sha256 : "";
  if (published.tokenizer == manifest.tokenizer && published.tokenizer_sha256 == sha256) return Notes();
  return unless_forced(
      force,
      fmt::format("the dataset in {} was made with the tokenizer {} ({}), and this state's run with {} ({})", where,
                  manifest.tokenizer, sha256.empty() ? "no file" : "SHA-256 " + sha256, printable(published.tokenizer),
                  published.tokenizer_sha256.empty() ? "no file" : "SHA-256 " + published.tokenizer_sha256),
      "prepare the data with the run's");
}

}  // namespace atl
