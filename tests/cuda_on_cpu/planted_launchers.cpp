// What a library of kernels with a planted mistake is asked for when it is loaded.
#include "tests/kernels/kernels_cuda_cases.h"

extern "C" void atoll_planted_launchers(atl::CudaLaunchers* launchers) { *launchers = atl::linked_launchers(); }
