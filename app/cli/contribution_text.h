// What a machine contributed, for a person. Pure functions.
#pragma once

#include <string>

#include "net/control/node_state.h"

namespace atl {

// "349,696 tokens trained, 12 rounds accepted, 1.9 GB sent, 2h05m of training"; "nothing yet" where there is nothing.
std::string contribution_text(const Contribution& given);

}  // namespace atl
