// The GPUs, asked and measured by `atoll-gpu-probe` in a child process: whatever the driver does, this process goes on
// and knows in which row it happened. Blocks; any thread that lives as long as the call.
//
// The child writes JSON objects, a line each. `list`: GpuFacts. `libraries`: {"missing": [{"name": "NCCL", "why":
// TEXT}]}, of those that computing on GPUs takes (net/base/gpu_libraries.h). `measure`: {"begin": ROW}, then per card
// {"gpu": 0, "bf16_flops": 6.1e14, "bf16_correct": true} and the like, at last {"done": true}; {"error": TEXT} ends a
// row that could not be measured.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "net/base/abort_signal.h"
#include "net/check/facts.h"
#include "net/check/probe_child.h"

namespace atl {

struct GpuProbe {
  std::filesystem::path program;
  std::string nvml;  // the library to load; empty: the system's
  std::chrono::milliseconds list_time{20'000};
  std::chrono::milliseconds measure_time{180'000};
  double matmul_seconds = 30;
};

GpuFacts list_gpus(const GpuProbe& probe, const AbortSignal& abort);
// Adds to `gpu` which of CUDA's libraries are missing; asks nothing where there are no cards.
void find_gpu_libraries(const GpuProbe& probe, const AbortSignal& abort, GpuFacts& gpu);
// Adds figures to `gpu`, or says in it why there are none.
void measure_gpus(const GpuProbe& probe, const AbortSignal& abort, GpuFacts& gpu);

// What the lines of `measure` mean, apart from processes. Figures that cannot be are errors.
class MeasurementReader {
 public:
  explicit MeasurementReader(GpuFacts& gpu) : gpu_(gpu) {}

  void take_line(std::string_view line);
  // How the child ended.
  void finish(const Status& ended);

 private:
  Status take(std::string_view line);
  void fail(const std::string& how);

  GpuFacts& gpu_;
  std::string row_ = "gpu.bf16";  // under way
  bool done_ = false;
};

}  // namespace atl
