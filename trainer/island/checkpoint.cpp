#include "trainer/island/checkpoint.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "net/base/file.h"
#include "net/disk/checkpoint_directory.h"
#include "net/disk/round_log.h"
#include "net/model/layout.h"
#include "trainer/island/kept_states.h"
#include "trainer/island/replay.h"

namespace atl {

Status save_checkpoint(const std::filesystem::path& directory, const ModelConfig& model, const OuterStateStore& outer) {
  ATOLL_RETURN_IF_ERROR(make_directories(directory, FileMode::kPrivate));
  ATOLL_RETURN_IF_ERROR(write_file_atomically(directory / kModelConfigFile, to_json(model), FileMode::kPrivate));
  return outer.save(directory / kOuterStateFile);
}

Result<IslandCheckpoint> load_checkpoint(const std::filesystem::path& directory) {
  const Result<std::string> config = read_file(directory / kModelConfigFile, 1u << 20);
  if (!config.ok()) {
    if (config.error().code != ErrorCode::kNotFound) return config.error();
    return Error{ErrorCode::kNotFound,
                 fmt::format("there is no checkpoint in {} yet: one is written every few rounds and when the "
                             "trainer ends",
                             directory.string())};
  }
  IslandCheckpoint checkpoint;
  ATOLL_ASSIGN_OR_RETURN(checkpoint.model, model_config_from_json(*config));
  const ParameterLayout layout = canonical_layout(checkpoint.model);
  checkpoint.outer = std::make_unique<OuterStateStore>(layout.numel);
  const RoundLog log(directory);
  for (StateOnDisk& found : newest_states(KeptStates(directory, 1, 0).entries(), log.rounds())) {
    const Status restored = restore(std::move(found), log, layout, *checkpoint.outer);
    if (restored.ok()) return checkpoint;
    spdlog::warn("checkpoint error=\"{}\"", restored.error().message);
  }
  ATOLL_RETURN_IF_ERROR(checkpoint.outer->load(directory / kOuterStateFile));
  return checkpoint;
}

}  // namespace atl
