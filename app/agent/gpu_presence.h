// Whether this machine has the GPUs that its owner names. Pure; any thread.
#pragma once

#include "app/config/gpu_list.h"
#include "net/base/result.h"
#include "net/check/facts.h"

namespace atl {

// Of "all" and "none" nothing is asked. kInvalidArgument names the first GPU that is not there. A driver that is there
// and cannot be asked now is believed to have them.
Status check_gpus_exist(const GpuList& chosen, const GpuFacts& gpu);

}  // namespace atl
