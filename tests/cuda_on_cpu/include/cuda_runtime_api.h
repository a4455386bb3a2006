// Takes the place of the CUDA toolkit's header where kernels are compiled for the CPU (tests/cuda_on_cpu/README.md).
#pragma once

#include "cuda_on_cpu/runtime.h"
