// The GPU that tests/gpu's programs run on: the real one, or the one in host memory that CI has in its place, by which
// of machine_real.cpp and machine_fake.cpp is linked. One for the whole program.
#pragma once

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdint>

#include "trainer/device/cuda_device_group.h"

namespace atl::gpu {

// What a program needs before it makes devices. Throws what is missing.
CudaLibraries libraries(const CudaDevices& devices);
// Bytes on the current GPU that are in use, whoever by.
std::uint64_t used_bytes();
// Whether it computes on the processor: sizes are to be small, and times mean nothing.
bool fake();

// In main, first: the standard output is for what was measured.
inline void log_to_stderr() { spdlog::set_default_logger(spdlog::stderr_logger_mt("gpu")); }

}  // namespace atl::gpu
