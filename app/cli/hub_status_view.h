// A run as its hub sees it, as lines for a person. Pure.
#pragma once

#include <string>
#include <vector>

#include "app/cli/console.h"
#include "net/control/hub_state.h"

namespace atl {

// `store`: where the run's states are to be published; empty: nowhere.
std::vector<std::string> hub_status_lines(const HubState& state, const std::string& store, const Console& console);

}  // namespace atl
