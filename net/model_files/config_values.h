// A model's config.json as values, key by key (net/model/config.h). Pure; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "net/model/config.h"

namespace atl {

nlohmann::json config_values(const ModelConfig& config);

}  // namespace atl
