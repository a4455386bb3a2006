// The control protocol's config.get and config.set, and the JSON of `atoll config get`. Any thread; blocks on the disk.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "app/config/config.h"

namespace atl {

// {key?} -> {values: [{key, value, default, origin, meaning}], file, settings}
Result<nlohmann::json> get_config(const ConfigSources& sources, const nlohmann::json& params);
// {key, value: string, or null to go back} -> as get_config of that key
Result<nlohmann::json> set_config(const ConfigSources& sources, const nlohmann::json& params);

}  // namespace atl
