// The wire formats' kernels on this machine: verified first, then timed beside memcpy over the same bytes (input and
// output), on the same number of threads, in the same run.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/wire_format.h"
#include "net/base/abort_signal.h"
#include "net/base/result.h"

namespace atl {

struct QuantiseBenchOptions {
  std::uint64_t payload_bytes = 256u << 20;  // of fp32
  WireFormat wire = WireFormat::kInt8Block;
  int threads = 1;
  int repeat = 5;
};

struct KernelTimes {
  std::vector<double> seconds;
  double memcpy_seconds = 0;  // of input + output of the kernel, half read and half written
};

struct QuantiseBenchResult {
  double relative_error = 0;  // of decoding what was encoded
  KernelTimes quantise;
  KernelTimes dequantise_add;
};

Result<QuantiseBenchResult> run_quantise_bench(const QuantiseBenchOptions& options, const AbortSignal& interrupt);

}  // namespace atl
