// Takes the place of the CUDA toolkit's header, which nvcc includes at the head of every .cu file: so does
// transform.py.
#pragma once

#include "cuda_on_cpu/device_functions.h"
#include "cuda_runtime_api.h"
