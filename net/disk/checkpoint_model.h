// Of which model an island's checkpoint directory is, and what of it its run trains: as kModelConfigFile and kRunFile
// say. Reads two small files; any thread.
#pragma once

#include <filesystem>
#include <optional>

#include "net/base/result.h"
#include "net/model/config.h"
#include "net/model/layout.h"
#include "net/wire/run_config.h"

namespace atl {

struct CheckpointModel {
  ModelConfig config;
  ParameterLayout layout;        // with what is trained (net/model/train_only.h); without kRunFile all of it
  std::optional<RunConfig> run;  // as kRunFile says
};

// Of kRunFile; nothing where there is none.
Result<std::optional<RunConfig>> load_kept_run(const std::filesystem::path& directory);

// kNotFound where the directory says no model. A kRunFile that is there and cannot be read is an error: joining the run
// again writes it anew.
Result<CheckpointModel> load_checkpoint_model(const std::filesystem::path& directory);

}  // namespace atl
