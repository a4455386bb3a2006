// Reads a hub's directory. For net/hub and the commands about a hub. Blocks on the disk; any thread.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "net/base/result.h"
#include "net/base/unique_fd.h"
#include "net/control/home.h"
#include "net/wire/run_config.h"

namespace atl {

Result<RunConfig> load_run(const HubHome& home);  // kNotFound when there is no hub
// What islands hear of when they come next. kPermissionDenied while the hub is served.
Status save_run(const HubHome& home, const RunConfig& run);
// How many rounds are committed; kNotFound when there is no hub.
Result<std::uint32_t> committed_rounds(const HubHome& home);

// Held by the one process that serves it: two hubs of one run would commit different things. kPermissionDenied when
// another holds it.
Result<UniqueFd> lock_home(const HubHome& home);

struct HubFile {  // hub.json: what is this hub's, and not the run's
  // Of each source; of a run without sources one, without a name.
  std::map<std::string, std::filesystem::path> datasets;
  std::string operator_name;  // may be empty
};
Result<HubFile> load_hub_file(const HubHome& home);

}  // namespace atl
