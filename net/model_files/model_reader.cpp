#include "net/model_files/model_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "net/base/file.h"
#include "net/base/json_reader.h"
#include "net/base/plain_name.h"
#include "net/base/printable.h"

namespace atl {
namespace {

constexpr std::size_t kMaxIndexBytes = 64u << 20;
constexpr std::size_t kMostConfigBytes = 1u << 20;
constexpr std::size_t kShown = 128;  // bytes of a name
constexpr std::size_t kMaxFileName = 255;
constexpr const char* kEmbedding = "model.embed_tokens.weight";
constexpr const char* kHead = "lm_head.weight";
constexpr std::size_t kComparedNumel = 1u << 16;  // values at once

// What transformers writes, too, and does not read: the rotary frequencies, and the head where it is tied.
bool follows_from_others(std::string_view name, const ModelConfig& config) {
  return name.ends_with("rotary_emb.inv_freq") || (config.tie_word_embeddings && name == kHead);
}

const SafetensorsFile::Tensor* tensor_in(const std::vector<SafetensorsFile>& files, const std::string& name) {
  for (const SafetensorsFile& file : files) {
    if (const auto found = file.tensors().find(name); found != file.tensors().end()) return &found->second;
  }
  return nullptr;
}

// Bit for bit, once widened: a head in another type may still be the embedding.
bool same_values(const SafetensorsFile::Tensor& one, const SafetensorsFile::Tensor& other) {
  if (one.shape != other.shape || !is_float(one.type) || !is_float(other.type)) return false;
  if (one.type == other.type) return std::ranges::equal(one.bytes, other.bytes);
  const auto numel = static_cast<std::size_t>(one.numel);
  std::vector<float> a(std::min(numel, kComparedNumel)), b(a.size());
  for (std::size_t first = 0; first < numel; first += a.size()) {
    const std::size_t count = std::min(a.size(), numel - first);
    widen(one, first, std::span(a).first(count));
    widen(other, first, std::span(b).first(count));
    if (!std::ranges::equal(std::as_bytes(std::span(a).first(count)), std::as_bytes(std::span(b).first(count)))) {
      return false;
    }
  }
  return true;
}

Error corrupt(const std::filesystem::path& path, std::string_view what) {
  return Error{ErrorCode::kCorrupt, fmt::format("{}: {}", path.string(), what)};
}

// The index's tensors by file. Files in their names' order.
Result<std::map<std::string, std::set<std::string>>> read_index(const std::filesystem::path& path) {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, read_file(path, kMaxIndexBytes));
  const auto json = parse_bounded_json(text, kMaxIndexBytes, kMaxConfigDepth);
  if (!json.ok()) return corrupt(path, json.error().message);
  const auto map = json->find("weight_map");
  if (!json->is_object() || map == json->end() || !map->is_object() || map->empty()) {
    return corrupt(path, "it has no weight_map that says in which file each tensor is");
  }
  std::map<std::string, std::set<std::string>> files;
  for (const auto& [tensor, file] : map->items()) {
    // An index of somebody else's must not make us open what lies elsewhere.
    if (!file.is_string() || !is_plain_name(file.get_ref<const std::string&>(), kMaxFileName)) {
      return corrupt(path, fmt::format("the file of tensor {} is no name of a file in this directory, of letters, "
                                       "digits, '-', '_' and '.'; rename it, there and here",
                                       printable(tensor, kShown)));
    }
    files[file.get<std::string>()].insert(tensor);
  }
  return files;
}

// Of a config.json that a model's shape could be read from.
Result<std::optional<AttentionScope>> attention_in(const std::string& config, const std::filesystem::path& file) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json json, parse_bounded_json(config, kMostConfigBytes, kMaxConfigDepth));
  const auto found = json.find(kAttentionKey);
  if (found == json.end() || found->is_null()) return std::optional<AttentionScope>();
  const auto scope = found->is_string() ? attention_scope_named(found->get<std::string>()) : std::nullopt;
  if (scope) return scope;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{}: \"{}\" is neither \"packed\" nor \"document\"", file.string(), kAttentionKey)};
}

}  // namespace

Result<ModelReader> ModelReader::open(const std::filesystem::path& directory) {
  ModelReader reader;
  reader.directory_ = directory;
  ATOLL_ASSIGN_OR_RETURN(const std::string text, read_file(directory / kConfigFile, kMostConfigBytes));
  auto config = model_config_from_json(text);
  if (!config.ok()) return config.error().with_context((directory / kConfigFile).string());
  reader.config_ = std::move(*config);
  ATOLL_ASSIGN_OR_RETURN(reader.attention_, attention_in(text, directory / kConfigFile));
  ATOLL_RETURN_IF_ERROR(reader.open_files());
  reader.settle_head();
  reader.layout_ = canonical_layout(reader.config_);
  ATOLL_RETURN_IF_ERROR(reader.find_parameters());
  ATOLL_RETURN_IF_ERROR(reader.check_nothing_is_left_over());
  return reader;
}

// Where there are both, transformers reads the single file.
Status ModelReader::open_files() {
  std::error_code failed;
  const std::filesystem::path index = directory_ / kIndexFile;
  if (!std::filesystem::exists(directory_ / kSingleFile, failed) && std::filesystem::exists(index, failed)) {
    return open_shards(index);
  }
  ATOLL_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(directory_ / kSingleFile));
  files_.push_back(std::move(file));
  return ok_status();
}

Status ModelReader::open_shards(const std::filesystem::path& index) {
  ATOLL_ASSIGN_OR_RETURN(const auto shards, read_index(index));
  for (const auto& [name, tensors] : shards) {
    auto file = SafetensorsFile::open(directory_ / name);
    if (!file.ok() && file.error().code == ErrorCode::kNotFound) {
      return Error{ErrorCode::kNotFound, fmt::format("{} is missing, which {} names; fetch or export the model again",
                                                     printable((directory_ / name).string(), 512), kIndexFile)};
    }
    if (!file.ok()) return file.error();
    for (const auto& [tensor, found] : file->tensors()) {
      if (!tensors.contains(tensor)) {
        return corrupt(
            directory_ / printable(name, kShown),
            fmt::format("it has a tensor {} that {} does not place there", printable(tensor, kShown), kIndexFile));
      }
    }
    for (const std::string& tensor : tensors) {
      if (!file->has(tensor)) {
        return corrupt(directory_ / printable(name, kShown), fmt::format("it has no tensor {}, which {} places there",
                                                                         printable(tensor, kShown), kIndexFile));
      }
    }
    files_.push_back(std::move(*file));
  }
  return ok_status();
}

// A configuration may lie about the head: what it would have lost was trained.
void ModelReader::settle_head() {
  const SafetensorsFile::Tensor* head = tensor_in(files_, kHead);
  const SafetensorsFile::Tensor* embedding = tensor_in(files_, kEmbedding);
  if (!config_.tie_word_embeddings || head == nullptr || embedding == nullptr) return;
  if (same_values(*head, *embedding)) return;
  config_.tie_word_embeddings = false;
  note_ = fmt::format(
      "{} says tie_word_embeddings, and {} of this model is another matrix than {}: it is kept, and nothing is tied",
      (directory_ / kConfigFile).string(), kHead, kEmbedding);
}

// Where the head is tied and stands there alone, it is the embedding.
Result<SafetensorsFile::Tensor> ModelReader::find(const ParameterInfo& parameter) const {
  const SafetensorsFile::Tensor* tensor = tensor_in(files_, parameter.name);
  if (tensor == nullptr && parameter.name == kEmbedding && config_.tie_word_embeddings) {
    tensor = tensor_in(files_, kHead);
  }
  if (tensor != nullptr) return *tensor;
  return Error{ErrorCode::kNotFound, fmt::format("{} has no tensor {}, which a model of its config.json has",
                                                 directory_.string(), parameter.name)};
}

// Before anything is allocated: a configuration may lie about sizes.
Status ModelReader::find_parameters() {
  for (const ParameterInfo& parameter : layout_.parameters) {
    ATOLL_ASSIGN_OR_RETURN(SafetensorsFile::Tensor tensor, find(parameter));
    if (tensor.shape != parameter.shape) {
      return corrupt(directory_, fmt::format("{} has shape [{}], and [{}] by config.json", parameter.name,
                                             fmt::join(tensor.shape, ", "), fmt::join(parameter.shape, ", ")));
    }
    if (!is_float(tensor.type)) {
      return Error{ErrorCode::kInvalidArgument, fmt::format("{}: tensor {} has type {}; F32, F16 or BF16 is needed",
                                                            directory_.string(), parameter.name, tensor.type_name)};
    }
    tensors_.push_back(std::move(tensor));
  }
  return ok_status();
}

// What is not computed is not left out in silence: it is another model's.
Status ModelReader::check_nothing_is_left_over() const {
  std::set<std::string_view> computed, seen;
  for (const ParameterInfo& parameter : layout_.parameters) computed.insert(parameter.name);
  for (const SafetensorsFile& file : files_) {
    for (const auto& [name, tensor] : file.tensors()) {
      if (!seen.insert(name).second) {
        return corrupt(directory_, fmt::format("two files have a tensor {}", printable(name, kShown)));
      }
      if (computed.contains(name) || follows_from_others(name, config_)) continue;
      return corrupt(directory_, fmt::format("there is a tensor {} that a model of config.json does not have",
                                             printable(name, kShown)));
    }
  }
  return ok_status();
}

bool ModelReader::is_bf16() const {
  return std::ranges::all_of(tensors_, [](const auto& each) { return each.type == SafetensorsFile::Type::kBf16; });
}

void ModelReader::read(std::int64_t offset, std::span<float> out) const {
  const auto after = std::ranges::upper_bound(layout_.parameters, offset, {}, &ParameterInfo::offset);
  for (auto i = static_cast<std::size_t>(after - layout_.parameters.begin()) - 1; !out.empty(); ++i) {
    const std::int64_t first = offset - layout_.parameters[i].offset;
    const auto count = std::min(out.size(), static_cast<std::size_t>(layout_.parameters[i].numel - first));
    widen(tensors_[i], static_cast<std::size_t>(first), out.first(count));
    out = out.subspan(count);
    offset += static_cast<std::int64_t>(count);
  }
}

Result<ModelDirectory> read_model_directory(const std::filesystem::path& directory) {
  ATOLL_ASSIGN_OR_RETURN(const ModelReader reader, ModelReader::open(directory));
  ModelDirectory model{reader.config(), std::vector<float>(static_cast<std::size_t>(reader.layout().numel))};
  reader.read(0, model.parameters);
  return model;
}

}  // namespace atl
