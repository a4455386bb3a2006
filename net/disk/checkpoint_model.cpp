#include "net/disk/checkpoint_model.h"

#include "net/base/file.h"
#include "net/disk/checkpoint_directory.h"
#include "net/model/train_only.h"
#include "net/wire/run_config.h"

namespace atl {
namespace {

constexpr std::size_t kMostConfigBytes = 1u << 20;

}  // namespace

Result<std::optional<RunConfig>> load_kept_run(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / kRunFile;
  const auto text = read_file(file);
  if (!text.ok() && text.error().code == ErrorCode::kNotFound) return std::optional<RunConfig>();
  if (!text.ok()) return text.error();
  auto run = RunConfig::from_json(*text);
  if (!run.ok()) return run.error().with_context(file.string());
  return std::optional<RunConfig>(std::move(*run));
}

Result<CheckpointModel> load_checkpoint_model(const std::filesystem::path& directory) {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, read_file(directory / kModelConfigFile, kMostConfigBytes));
  auto config = model_config_from_json(text);
  if (!config.ok()) return config.error().with_context((directory / kModelConfigFile).string());
  // One that is damaged is no reason to take everything as trained: rounds would be replayed into another model's
  // places.
  ATOLL_ASSIGN_OR_RETURN(std::optional<RunConfig> run, load_kept_run(directory));
  ParameterLayout layout = layout_of_training(*config, run ? run->train_only : std::vector<std::string>{});
  return CheckpointModel{std::move(*config), std::move(layout), std::move(run)};
}

}  // namespace atl
