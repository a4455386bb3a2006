#include "trainer/checkpoint/huggingface.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "net/base/file.h"
#include "net/base/printable.h"
#include "net/model/layout.h"
#include "trainer/checkpoint/safetensors.h"

namespace atl {
namespace {

// What transformers writes, too, and does not read: the rotary frequencies, and the head where it is tied.
bool follows_from_others(std::string_view name, const ModelConfig& config) {
  return name.ends_with("rotary_emb.inv_freq") || (config.tie_word_embeddings && name == "lm_head.weight");
}

// What is not computed is not left out in silence: it is another model's.
Status check_nothing_is_left_over(const std::filesystem::path& directory, const SafetensorsFile& file,
                                  const ParameterLayout& layout, const ModelConfig& config) {
  std::set<std::string_view> computed;
  for (const ParameterInfo& parameter : layout.parameters) computed.insert(parameter.name);
  for (const auto& [name, tensor] : file.tensors()) {
    if (computed.contains(name) || follows_from_others(name, config)) continue;
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{}: model.safetensors has a tensor {} that a model of config.json does not",
                             directory.string(), printable(name))};
  }
  return ok_status();
}

}  // namespace

Result<ModelDirectory> read_model_directory(const std::filesystem::path& directory) {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, read_file(directory / "config.json", 1u << 20));
  auto config = model_config_from_json(text);
  if (!config.ok()) return config.error().with_context((directory / "config.json").string());
  ATOLL_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::open(directory / "model.safetensors"));
  const ParameterLayout layout = canonical_layout(*config);
  // Shapes first: a configuration that lies about sizes must not make us allocate for it.
  for (const ParameterInfo& parameter : layout.parameters) {
    ATOLL_ASSIGN_OR_RETURN(const SafetensorsFile::Tensor tensor, file.tensor(parameter.name));
    if (tensor.shape != parameter.shape) {
      return Error{
          ErrorCode::kCorrupt,
          fmt::format("{}: {} has shape [{}] in model.safetensors, and [{}] by config.json", directory.string(),
                      parameter.name, fmt::join(tensor.shape, ", "), fmt::join(parameter.shape, ", "))};
    }
  }
  ATOLL_RETURN_IF_ERROR(check_nothing_is_left_over(directory, file, layout, *config));
  ModelDirectory model{*config, std::vector<float>(static_cast<std::size_t>(layout.numel))};
  for (const ParameterInfo& parameter : layout.parameters) {
    const auto part =
        std::span(model.parameters)
            .subspan(static_cast<std::size_t>(parameter.offset), static_cast<std::size_t>(parameter.numel));
    ATOLL_RETURN_IF_ERROR(file.read_floats(parameter.name, part));
  }
  return model;
}

Status write_model_directory(const std::filesystem::path& directory, const ModelConfig& config,
                             std::span<const float> parameters) {
  const ParameterLayout layout = canonical_layout(config);
  if (parameters.size() != static_cast<std::size_t>(layout.numel)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} parameters given for a model of {}", parameters.size(), layout.numel)};
  }
  ATOLL_RETURN_IF_ERROR(make_directories(directory));
  std::vector<SafetensorsEntry> entries;
  for (const ParameterInfo& parameter : layout.parameters) {
    entries.push_back(
        {parameter.name, parameter.shape,
         parameters.subspan(static_cast<std::size_t>(parameter.offset), static_cast<std::size_t>(parameter.numel))});
  }
  ATOLL_RETURN_IF_ERROR(write_safetensors(directory / "model.safetensors", entries));
  return write_file_atomically(directory / "config.json", to_json(config), FileMode::kPublic);
}

}  // namespace atl
