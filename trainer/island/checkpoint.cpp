#include "trainer/island/checkpoint.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "net/base/file.h"
#include "net/disk/checkpoint_directory.h"
#include "net/disk/checkpoint_model.h"
#include "net/disk/replay.h"
#include "net/disk/round_log.h"
#include "net/model/layout.h"

namespace atl {
namespace {

Error none_yet(const std::filesystem::path& directory) {
  return Error{ErrorCode::kNotFound,
               fmt::format("there is no checkpoint in {} yet: one is written every few rounds and when the "
                           "trainer ends",
                           directory.string())};
}

}  // namespace

Error no_whole_checkpoint(const std::filesystem::path& directory) {
  const auto paths = outer_state_files(directory);
  if (!paths.ok()) return paths.error();
  for (const std::filesystem::path& path : *paths) {
    const auto info = peek_snapshot(path);
    if (!info.ok()) return info.error();
  }
  if (paths->empty()) return none_yet(directory);
  return Error{ErrorCode::kCorrupt,
               fmt::format("the rounds are missing that the checkpoints in {} need", directory.string())};
}

Result<IslandCheckpoint> load_checkpoint(const std::filesystem::path& directory, std::vector<KeptState>* unreadable) {
  IslandCheckpoint checkpoint;
  auto model = load_checkpoint_model(directory);
  if (!model.ok()) return model.error().code == ErrorCode::kNotFound ? none_yet(directory) : model.error();
  checkpoint.model = std::move(model->config);
  const ParameterLayout& layout = model->layout;
  const RoundLog log(directory);
  std::optional<Error> why;
  for (const StateOnDisk& found : newest_states(kept_states(directory), log.rounds())) {
    Result<FetchedState> state = restore(found, log, layout);
    if (state.ok()) {
      checkpoint.outer = std::make_unique<OuterStateStore>(layout.numel);
      checkpoint.outer->replace(std::move(*state));
      return checkpoint;
    }
    spdlog::warn("checkpoint error=\"{}\"", state.error().message);
    why = state.error();
    if (unreadable != nullptr) unreadable->push_back(found.snapshot);
  }
  return why ? *why : no_whole_checkpoint(directory);
}

}  // namespace atl
