#include "net/model_files/model_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "kernels/bf16.h"
#include "net/base/file.h"
#include "net/model_files/config_values.h"
#include "net/model_files/model_reader.h"
#include "net/model_files/safetensors.h"

namespace atl {
namespace {

constexpr std::size_t kPieceNumel = 1 << 20;  // values rounded to bf16 at once

std::uint64_t bytes_of(ModelDtype dtype) { return dtype == ModelDtype::kFloat32 ? 4 : 2; }

// How many parameters each file has: greedily, as transformers does.
std::vector<std::size_t> parameters_of_shards(const ParameterLayout& layout, ModelDtype dtype, std::uint64_t most) {
  std::vector<std::size_t> shards;
  std::uint64_t bytes = 0;
  for (const ParameterInfo& parameter : layout.parameters) {
    const std::uint64_t more = static_cast<std::uint64_t>(parameter.numel) * bytes_of(dtype);
    if (shards.empty() || bytes + more > most) {
      shards.push_back(0);
      bytes = 0;
    }
    ++shards.back();
    bytes += more;
  }
  return shards;
}

Status check_room(const std::filesystem::path& directory, std::uint64_t bytes) {
  std::error_code failed;
  const auto space = std::filesystem::space(directory, failed);
  if (failed || space.available >= bytes) return ok_status();
  return Error{ErrorCode::kDiskFull,
               fmt::format("the model takes {} bytes, and the disk of {} has {} left; make room, or write it elsewhere",
                           bytes, directory.string(), space.available)};
}

std::string config_json(const ModelConfig& config, ModelDtype dtype, AttentionScope attention) {
  nlohmann::json json = config_values(config);
  if (attention != AttentionScope::kPacked) json[kAttentionKey] = attention_scope_name(attention);
  json["dtype"] = name_of(dtype);
  json["torch_dtype"] = name_of(dtype);
  return json.dump(2) + "\n";
}

// What transformers' generate() begins and ends with.
std::string generation_config_json(const ModelConfig& config, std::span<const std::int64_t> ends) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  const auto add = [&](const char* key, const std::vector<std::int64_t>& ids) {
    if (ids.size() == 1) json[key] = ids.front();
    if (ids.size() > 1) json[key] = ids;
  };
  add("bos_token_id", config.bos_token_ids);
  std::vector<std::int64_t> all = config.eos_token_ids;
  for (const std::int64_t end : ends) {
    if (std::ranges::find(all, end) == all.end()) all.push_back(end);
  }
  add("eos_token_id", all);
  if (config.pad_token_id) json["pad_token_id"] = *config.pad_token_id;
  return json.dump(2) + "\n";
}

// model-00001-of-00002.safetensors
bool is_shard_name(std::string_view name) {
  return name.starts_with("model-") && name.ends_with(".safetensors") && name.find("-of-") != std::string_view::npos;
}

}  // namespace

std::string_view name_of(ModelDtype dtype) { return dtype == ModelDtype::kFloat32 ? "float32" : "bfloat16"; }

std::optional<ModelDtype> parse_model_dtype(std::string_view name) {
  for (const ModelDtype dtype : {ModelDtype::kFloat32, ModelDtype::kBfloat16}) {
    if (name == name_of(dtype)) return dtype;
  }
  return std::nullopt;
}

Result<ModelWriter> ModelWriter::create(const std::filesystem::path& directory, const ModelConfig& config,
                                        const ModelFilesOptions& options) {
  ModelWriter writer(directory, config, options);
  writer.layout_ = canonical_layout(config);
  ATOLL_RETURN_IF_ERROR(make_directories(directory));
  ATOLL_RETURN_IF_ERROR(
      check_room(directory, static_cast<std::uint64_t>(writer.layout_.numel) * bytes_of(options.dtype)));
  const auto shards = parameters_of_shards(writer.layout_, options.dtype, options.max_shard_bytes);
  std::size_t first = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    std::string name =
        shards.size() == 1 ? kSingleFile : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    ATOLL_RETURN_IF_ERROR(writer.add_shard(first, shards[i], std::move(name)));
    first += shards[i];
  }
  return writer;
}

Status ModelWriter::add_shard(std::size_t first_parameter, std::size_t parameters, std::string name) {
  std::vector<SafetensorsEntry> entries;
  std::int64_t numel = 0;
  for (std::size_t i = first_parameter; i < first_parameter + parameters; ++i) {
    const ParameterInfo& parameter = layout_.parameters[i];
    entries.push_back({parameter.name, dtype_ == ModelDtype::kFloat32 ? "F32" : "BF16", parameter.shape,
                       static_cast<std::uint64_t>(parameter.numel) * bytes_of(dtype_)});
    numel += parameter.numel;
  }
  ATOLL_ASSIGN_OR_RETURN(NewFile file, NewFile::create(directory_ / name, FileMode::kPublic));
  const std::string header = safetensors_header(entries);
  ATOLL_RETURN_IF_ERROR(file.write_at(0, as_bytes(header)));
  shards_.push_back(
      {std::move(name), layout_.parameters[first_parameter].offset, numel, header.size(), std::move(file)});
  return ok_status();
}

Status ModelWriter::write(std::int64_t offset, std::span<const float> values) {
  Bytes rounded;
  while (!values.empty()) {
    const auto after = std::ranges::upper_bound(shards_, offset, {}, &Shard::first);
    Shard& shard = *(after - 1);
    auto count = std::min(values.size(), static_cast<std::size_t>(shard.first + shard.numel - offset));
    ByteView bytes = std::as_bytes(values.first(count));
    if (dtype_ == ModelDtype::kBfloat16) {
      count = std::min(count, kPieceNumel);
      rounded.resize(2 * count);
      encode_bf16(values.data(), count, rounded.data());
      bytes = rounded;
    }
    const auto at = shard.data_begin + static_cast<std::uint64_t>(offset - shard.first) * bytes_of(dtype_);
    ATOLL_RETURN_IF_ERROR(shard.file.write_at(at, bytes));
    values = values.subspan(count);
    offset += static_cast<std::int64_t>(count);
  }
  return ok_status();
}

std::string ModelWriter::index_json() const {
  nlohmann::ordered_json map = nlohmann::ordered_json::object();
  for (const ParameterInfo& parameter : layout_.parameters) {
    const auto after = std::ranges::upper_bound(shards_, parameter.offset, {}, &Shard::first);
    map[parameter.name] = (after - 1)->name;
  }
  const nlohmann::ordered_json index{{"metadata",
                                      {{"total_parameters", layout_.numel},
                                       {"total_size", static_cast<std::uint64_t>(layout_.numel) * bytes_of(dtype_)}}},
                                     {"weight_map", map}};
  return index.dump(2) + "\n";
}

// Another model's single file would be read instead of the shards, and its template instead of none.
Status ModelWriter::remove_others(std::span<const CompanionFile> companions) const {
  std::set<std::string> own{shards_.size() == 1 ? kSingleFile : kIndexFile};
  for (const CompanionFile& companion : companions) own.insert(companion.name);
  for (const Shard& shard : shards_) own.insert(shard.name);
  std::error_code failed;
  std::filesystem::directory_iterator entries(directory_, failed);
  for (; !failed && entries != std::filesystem::directory_iterator(); entries.increment(failed)) {
    const std::string name = entries->path().filename().string();
    const bool of_a_model =
        name == kSingleFile || name == kIndexFile || name == kChatTemplateFile || is_shard_name(name);
    if (!of_a_model || own.contains(name)) continue;
    std::error_code kept;
    std::filesystem::remove(entries->path(), kept);
    if (!kept) continue;
    return Error{ErrorCode::kIo, fmt::format("remove {}: {}; it is of the model that was here before",
                                             entries->path().string(), kept.message())};
  }
  return flush_directory(directory_);
}

// Small files are written before any takes its place, so that a disk that is full by then leaves what was there.
Status ModelWriter::finish(std::span<const CompanionFile> companions, std::span<const std::int64_t> ends) && {
  std::vector<CompanionFile> small;
  if (shards_.size() > 1) small.push_back({kIndexFile, index_json()});
  small.insert(small.end(), companions.begin(), companions.end());
  small.push_back({kGenerationConfigFile, generation_config_json(config_, ends)});
  small.push_back({kConfigFile, config_json(config_, dtype_, attention_)});
  std::vector<NewFile> files;
  for (const CompanionFile& each : small) {
    ATOLL_ASSIGN_OR_RETURN(NewFile file, NewFile::create(directory_ / each.name, FileMode::kPublic));
    ATOLL_RETURN_IF_ERROR(file.write(as_bytes(each.content)));
    files.push_back(std::move(file));
  }
  for (Shard& shard : shards_) ATOLL_RETURN_IF_ERROR(shard.file.take_place());
  for (NewFile& file : files) ATOLL_RETURN_IF_ERROR(file.take_place());
  return remove_others(companions);
}

Status write_model_directory(const std::filesystem::path& directory, const ModelConfig& config,
                             std::span<const float> parameters, const ModelFilesOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(ModelWriter writer, ModelWriter::create(directory, config, options));
  if (parameters.size() != static_cast<std::size_t>(writer.layout().numel)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} parameters given for a model of {}", parameters.size(), writer.layout().numel)};
  }
  ATOLL_RETURN_IF_ERROR(writer.write(0, parameters));
  return std::move(writer).finish();
}

}  // namespace atl
