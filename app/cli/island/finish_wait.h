// The end of `atoll finish`: waited for through the agent, which ends with it where it is the part of a foreground
// command.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "net/base/abort_signal.h"
#include "net/control/control_client.h"
#include "net/control/home.h"
#include "net/control/node_state.h"

namespace atl {

// Returns once the trainer is gone: what the machine contributed, if that is known. Its error when it ended in another
// way than by completing its round after `asked_at` (seconds since 1970); kAborted when somebody resumed the training,
// or `interrupt` was raised. An agent that is gone is judged by what it wrote down: that it settled the wish; else
// kTrainerFailed. `on_trouble` hears what is amiss meanwhile, when it is new: a hub that does not answer, a standstill.
Result<std::optional<ContributionView>> await_finish(ControlClient& agent, const AgentHome& home, double asked_at,
                                                     const AbortSignal& interrupt,
                                                     const std::function<void(const std::string& trouble)>& on_trouble);

}  // namespace atl
