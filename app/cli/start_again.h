// The words by which a person starts what does not run: an island, or a hub. A directory of `atoll train` holds both,
// and is started by that command alone. Reads the disk; any thread.
#pragma once

#include <filesystem>
#include <string>

#include "net/base/result.h"
#include "net/control/home.h"

namespace atl {

inline constexpr const char* kTrainRunName = "train";  // of each run of `atoll train`

// "atoll join --home DIR"
std::string how_to_train(const AgentHome& home);
// Of a hub that does not answer: what it is, and what to do.
Error hub_does_not_serve(const HubHome& home);

}  // namespace atl
