// Model directories as HuggingFace writes them: config.json and model.safetensors. No torch; any thread.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "net/base/result.h"
#include "net/model/config.h"

namespace atl {

struct ModelDirectory {
  ModelConfig config;
  std::vector<float> parameters;  // canonical flat order
};

Result<ModelDirectory> read_model_directory(const std::filesystem::path& directory);

// Creates the directory where missing; each file is replaced whole, config.json last.
Status write_model_directory(const std::filesystem::path& directory, const ModelConfig& config,
                             std::span<const float> parameters);

}  // namespace atl
