// Whether this machine has the GPUs that its owner names. Asks its driver, by the probe's child process; blocks.
#pragma once

#include <string>

#include "net/base/abort_signal.h"
#include "net/base/result.h"

namespace atl {

// Of "all" and "none" nothing is asked. kInvalidArgument names the first GPU that is not there. A driver that is there
// and cannot be asked now is believed to have them.
Status check_gpus_exist(const std::string& gpu_list, const AbortSignal& interrupt);

}  // namespace atl
