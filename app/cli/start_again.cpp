#include "app/cli/start_again.h"

#include <fmt/format.h>

#include <cstdlib>
#include <optional>

namespace atl {
namespace {

// Of which `part` is the hub's or the island's directory. Another hub and an island may lie side by side, too.
std::optional<TrainHome> train_home_around(const std::filesystem::path& part) {
  const TrainHome train{part.parent_path()};
  if (part != train.hub().directory && part != train.island().directory) return std::nullopt;
  std::error_code ignored;
  const auto join = load_join_file(train.island().join_file());
  const bool is_one =
      join.ok() && join->run_name == kTrainRunName && std::filesystem::exists(train.hub().run_file(), ignored);
  return is_one ? std::optional(train) : std::nullopt;
}

bool is_default_hub(const HubHome& home) {
  const auto usual = default_hub_home();
  return usual.ok() && *usual == home.directory;
}

}  // namespace

std::string how_to_train(const AgentHome& home) {
  if (const auto train = train_home_around(home.island.directory)) {
    return fmt::format("atoll train --dir {}", train->directory.string());
  }
  // A home of one's own holds everything; the default one is found without a word.
  const bool is_own = home.state.parent_path() == home.island.directory && std::getenv("ATOLL_HOME") == nullptr;
  return is_own ? fmt::format("atoll join --home {}", home.island.directory.string()) : std::string("atoll join");
}

Error hub_does_not_serve(const HubHome& home) {
  if (const auto train = train_home_around(home.directory)) {
    const std::string directory = train->directory.string();
    return {
        ErrorCode::kNotRunning,
        fmt::format("{} is a run of 'atoll train', whose hub answers its own island alone; see: atoll status --home "
                    "{}, atoll rounds --home {}",
                    directory, directory, directory)};
  }
  return {ErrorCode::kNotRunning,
          fmt::format("the hub in {} does not serve; start it with: atoll hub serve{}", home.directory.string(),
                      is_default_hub(home) ? "" : fmt::format(" --home {}", home.directory.string()))};
}

}  // namespace atl
