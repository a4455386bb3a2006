// Which tokens end a text that a model writes: models for chats have several. Any thread; reads a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "net/base/result.h"
#include "net/model/config.h"

namespace atl {

// What the directory's generation_config.json says, as transformers' generate() takes it; where there is none, or it
// says nothing of it, what config.json says. kCorrupt names the file.
Result<std::vector<std::int64_t>> end_tokens(const std::filesystem::path& directory, const ModelConfig& config);

}  // namespace atl
