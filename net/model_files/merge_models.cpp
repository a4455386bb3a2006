#include "net/model_files/merge_models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/base/json_text.h"
#include "net/base/parallel.h"
#include "net/base/printable.h"
#include "net/model_files/config_values.h"
#include "net/model_files/end_tokens.h"
#include "net/model_files/model_reader.h"
#include "net/tokenizer/compare_tokenizers.h"
#include "net/tokenizer/load_tokenizer.h"

namespace atl {
namespace {

// Pieces that are merged before they are written.
std::size_t pieces_at_once() { return 4 * parallel_threads(); }

// What goes with a model's vocabulary.
constexpr const char* kTokenizerFiles[] = {
    "tokenizer.json", "tokenizer.model",   "tokenizer_config.json", "vocab.json",
    "merges.txt",     "added_tokens.json", "chat_template.jinja",   "special_tokens_map.json"};

// What makes a model compute something else. How its weights were once drawn does not, nor which tokens a text begins
// and ends with.
nlohmann::json shape_of(const ModelConfig& config) {
  nlohmann::json json = config_values(config);
  for (const char* key : {"initializer_range", "bos_token_id", "eos_token_id", "pad_token_id"}) json.erase(key);
  return json;
}

Status check_same_shape(const ModelReader& one, const ModelReader& other) {
  const nlohmann::json a = shape_of(one.config()), b = shape_of(other.config());
  for (const auto& [key, value] : a.items()) {
    if (b.at(key) == value) continue;
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} and {} cannot be merged: {} is {} of the one and {} of the other", one.directory().string(),
                    other.directory().string(), key, dump_json(value), dump_json(b.at(key)))};
  }
  return ok_status();
}

Result<std::vector<ModelReader>> open_inputs(const ModelMerge& merge) {
  std::vector<std::filesystem::path> paths = merge.models;
  if (merge.base) paths.push_back(*merge.base);
  std::vector<ModelReader> inputs;
  for (const std::filesystem::path& path : paths) {
    std::error_code failed;
    if (std::filesystem::equivalent(path, merge.output, failed)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} is to be merged and to be written; choose another directory", path.string())};
    }
    ATOLL_ASSIGN_OR_RETURN(ModelReader input, ModelReader::open(path));
    inputs.push_back(std::move(input));
    ATOLL_RETURN_IF_ERROR(check_same_shape(inputs.front(), inputs.back()));
  }
  return inputs;
}

bool has_no_tokenizer(const Result<std::optional<std::string>>& file) {
  return !file.ok() && file.error().code == ErrorCode::kNotFound;
}

// Of two directories: what differs, or why nobody can tell. One that cannot be read is one where both are the same.
Status check_one_tokenizer(const std::filesystem::path& one, const std::filesystem::path& other,
                           const MergeNote& on_note) {
  const auto refuse = [&](std::string_view what, std::string_view why) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} and {} {}: {}", one.string(), other.string(), what, why)};
  };
  const auto file = read_tokenizer_file(one), other_file = read_tokenizer_file(other);
  if (has_no_tokenizer(file) || has_no_tokenizer(other_file)) {
    on_note(fmt::format("no tokenizer lies beside {}: that it is the one of {} is taken on trust",
                        (has_no_tokenizer(file) ? one : other).string(),
                        (has_no_tokenizer(file) ? other : one).string()));
    return ok_status();
  }
  if (file.ok() && other_file.ok() && *file == *other_file) return ok_status();
  const auto of_one = load_tokenizer(one), of_other = load_tokenizer(other);
  for (const auto* each : {&of_one, &of_other}) {
    if (!each->ok()) return refuse("may be of two tokenizers", each->error().message);
  }
  const std::string name = fmt::format("that of {}", one.string()),
                    other_name = fmt::format("that of {}", other.string());
  const TokenizerComparison compared = compare_tokenizers({**of_one, name}, {**of_other, other_name});
  if (!compared.difference.empty()) return refuse("are of two tokenizers", compared.difference);
  if (!compared.only_in_other.empty()) {
    on_note(fmt::format("{} has special tokens that {} has not, whose tokenizer goes along: {}", other.string(),
                        one.string(), printable(fmt::format("{}", fmt::join(compared.only_in_other, ", ")), 256)));
  }
  return ok_status();
}

// Each is compared with the one whose tokenizer goes along.
Status check_tokenizers(const ModelMerge& merge, const std::vector<ModelReader>& inputs, const ModelReader& first,
                        const MergeNote& on_note) {
  for (const ModelReader& input : inputs) {
    if (!input.note().empty()) on_note(input.note());
    if (&input == &first) continue;
    const Status same = check_one_tokenizer(first.directory(), input.directory(), on_note);
    if (same.ok()) continue;
    if (!merge.other_tokenizers) {
      return Error{same.error().code, same.error().message + "; merge them all the same with --force"};
    }
    on_note(same.error().message + "; they are merged all the same, as --force says");
  }
  return ok_status();
}

Result<std::vector<CompanionFile>> tokenizer_of(const std::filesystem::path& directory) {
  std::vector<CompanionFile> files;
  for (const char* name : kTokenizerFiles) {
    auto content = read_file(directory / name, kMaxTokenizerFile);
    if (!content.ok() && content.error().code == ErrorCode::kNotFound) continue;
    if (!content.ok()) return content.error();
    files.push_back({name, std::move(*content)});
  }
  return files;
}

// For people, and for the front matter that the HuggingFace hub reads.
std::string card_of(const ModelMerge& merge) {
  const auto name = [](const std::filesystem::path& path) {
    const std::filesystem::path absolute = std::filesystem::absolute(path).lexically_normal();
    return printable((absolute.has_filename() ? absolute : absolute.parent_path()).filename().string(), 128);
  };
  const MergeRecipe& recipe = merge.recipe;
  std::string text = "---\nlibrary_name: transformers\ntags:\n- merge\n---\n\nMerged by `atoll merge`.\n\n";
  text += fmt::format("| method | {} |\n| --- | --- |\n", name_of(recipe.method));
  if (merge.base) text += fmt::format("| base | {} |\n", name(*merge.base));
  for (std::size_t i = 0; i < merge.models.size(); ++i) {
    text += fmt::format("| model | {}", name(merge.models[i]));
    if (recipe.method != MergeMethod::kSlerp) text += fmt::format(", weight {}", recipe.weights[i]);
    if (has_density(recipe.method)) text += fmt::format(", density {}", recipe.densities[i]);
    text += " |\n";
  }
  if (recipe.method == MergeMethod::kSlerp) text += fmt::format("| t | {} |\n", recipe.t);
  if (needs_base(recipe.method)) text += fmt::format("| lambda | {} |\n", recipe.lambda);
  if (recipe.method != MergeMethod::kSlerp) text += fmt::format("| normalize | {} |\n", recipe.normalizes());
  if (draws(recipe.method)) text += fmt::format("| seed | {} |\n", recipe.seed);
  return text;
}

Status merge_parameter(const ParameterMerge& parameter, const ParameterInfo& info, ModelWriter& writer,
                       const AbortSignal& abort, const std::function<void(std::int64_t)>& progress) {
  constexpr std::int64_t kPiece = ParameterMerge::kPieceNumel;
  std::vector<float> merged;
  for (std::int64_t first = 0; first < info.numel; first += static_cast<std::int64_t>(merged.size())) {
    if (abort.raised()) return Error{ErrorCode::kAborted, abort.reason()};
    const auto most = static_cast<std::int64_t>(pieces_at_once()) * kPiece;
    merged.resize(static_cast<std::size_t>(std::min(most, info.numel - first)));
    parallel_for((merged.size() + kPiece - 1) / kPiece, [&](std::size_t piece) {
      const std::size_t begin = piece * kPiece;
      parameter.merge(first + static_cast<std::int64_t>(begin),
                      std::span(merged).subspan(begin, std::min<std::size_t>(kPiece, merged.size() - begin)));
    });
    ATOLL_RETURN_IF_ERROR(writer.write(info.offset + first, merged));
    progress(info.offset + first + static_cast<std::int64_t>(merged.size()));
  }
  return ok_status();
}

}  // namespace

Result<std::int64_t> merge_models(const ModelMerge& merge, const AbortSignal& abort, const MergeProgress& progress,
                                  const MergeNote& on_note) {
  ATOLL_RETURN_IF_ERROR(merge.recipe.validate());
  ATOLL_ASSIGN_OR_RETURN(const std::vector<ModelReader> inputs, open_inputs(merge));
  const ModelReader& first = merge.base ? inputs.back() : inputs.front();
  ATOLL_RETURN_IF_ERROR(check_tokenizers(merge, inputs, first, on_note));
  ATOLL_ASSIGN_OR_RETURN(std::vector<CompanionFile> companions, tokenizer_of(first.directory()));
  companions.push_back({"README.md", card_of(merge)});
  ATOLL_ASSIGN_OR_RETURN(const std::vector<std::int64_t> ends, end_tokens(first.directory(), first.config()));
  ModelFilesOptions files = merge.files;
  const auto within_documents = [](const ModelReader& model) { return model.attention() == AttentionScope::kDocument; };
  if (std::ranges::all_of(inputs, within_documents)) files.attention = AttentionScope::kDocument;
  ATOLL_ASSIGN_OR_RETURN(ModelWriter writer, ModelWriter::create(merge.output, first.config(), files));
  const ParameterLayout& layout = first.layout();
  for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
    const ParameterInfo& info = layout.parameters[i];
    const MergeInput input = [&](std::size_t which, std::int64_t at, std::span<float> out) {
      inputs[which].read(info.offset + at, out);
    };
    const ParameterMerge parameter(merge.recipe, input, info.numel, i);
    ATOLL_RETURN_IF_ERROR(
        merge_parameter(parameter, info, writer, abort, [&](std::int64_t done) { progress(done, layout.numel); }));
  }
  ATOLL_RETURN_IF_ERROR(std::move(writer).finish(companions, ends));
  return layout.numel;
}

}  // namespace atl
