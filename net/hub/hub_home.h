// Reads a hub's directory. For net/hub and the commands about a hub. Blocks on the disk; any thread.
#pragma once

#include <filesystem>

#include "net/base/result.h"
#include "net/control/home.h"
#include "net/wire/run_config.h"

namespace atl {

Result<RunConfig> load_run(const HubHome& home);  // kNotFound when there is no hub
Result<std::filesystem::path> load_dataset_directory(const HubHome& home);

}  // namespace atl
