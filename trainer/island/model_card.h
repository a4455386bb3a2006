// README.md of an exported model: for people, with the front matter that the HuggingFace hub reads. Only what is known
// stands in it, and text of others as text, whatever Markdown would make of it. Pure; any thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "net/base/id.h"
#include "net/model/config.h"
#include "net/wire/contributors.h"
#include "net/wire/run_config.h"

namespace atl {

struct ModelCard {
  std::string run_id = {};
  std::string run_name = {};
  OuterStep outer_step = {};
  std::optional<RunConfig> run = {};           // how it is trained, and on what
  std::vector<Contributor> contributors = {};  // as the hub counted them when the model was exported
};

std::string model_card(const ModelCard& card, const ModelConfig& model, std::int64_t parameters);

// A card that somebody wrote is left alone: ours says of itself that the next export replaces it.
bool may_replace_card(const std::filesystem::path& path);

}  // namespace atl
