// How commands about a hub ask the one that serves, and print what it says. One thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "net/control/home.h"

namespace atl {

std::string dumped(const nlohmann::json& json, int indent = -1);

// Asked of the hub when it serves; empty when it does not.
Result<std::optional<nlohmann::json>> ask_hub(const HubHome& home, std::string_view method,
                                              const nlohmann::json& params);
// What a hub's islands are to hear of: a hub that serves is needed. `home` as --home has it.
Result<nlohmann::json> ask_serving_hub(const std::string& home, std::string_view method, const nlohmann::json& params);

// A person at a terminal is asked `question`; a script says --yes or has no terminal to be asked on. kAborted: a no.
Status ask_whether(bool yes, const std::string& question, const char* otherwise, CommandContext& context);

}  // namespace atl
