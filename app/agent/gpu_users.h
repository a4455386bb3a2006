// Whose the processes are that use a GPU: of this agent and its trainer, or of other programs. Reads /proc; any thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <vector>

#include "app/agent/owners_rules.h"
#include "net/check/gpu_reading.h"

namespace atl {

// This process, one that it started, the trainer (0: none runs), or one of the trainer's session.
bool is_of_this_agent(pid_t pid, pid_t trainer);

// Of the GPU of which other programs hold most. Empty: none uses any. A process that this machine does not have is of
// another container, as far as can be known the trainer itself as its host sees it: it does not count.
std::optional<GpusReading::Others> others_on(const std::vector<GpuReading>& gpus, pid_t trainer);

}  // namespace atl
