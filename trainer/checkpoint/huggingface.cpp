#include "trainer/checkpoint/huggingface.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "net/base/file.h"
#include "net/model/layout.h"
#include "trainer/checkpoint/safetensors.h"

namespace atl {

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
