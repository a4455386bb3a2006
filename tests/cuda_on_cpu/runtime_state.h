// What launches and the runtime's calls share.
#pragma once

#include <cstddef>

#include "cuda_runtime_api.h"
#include "net/base/mutex.h"

namespace atl::cuda_on_cpu {

// Held while a kernel runs, and while allocations change.
Mutex& launch_lock();
void set_last_error(cudaError_t error);
std::size_t dynamic_shared_limit();

}  // namespace atl::cuda_on_cpu
