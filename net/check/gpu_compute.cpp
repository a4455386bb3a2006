#include "net/check/gpu_compute.h"

namespace atl {

bool gpus_compute() {
#ifdef ATOLL_CUDA_KERNELS
  return true;
#else
  return false;
#endif
}

}  // namespace atl
