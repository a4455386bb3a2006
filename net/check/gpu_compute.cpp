#include "net/check/gpu_compute.h"

namespace atl {

// The trainer's engine runs on the processor alone.
bool gpus_compute() { return false; }

}  // namespace atl
