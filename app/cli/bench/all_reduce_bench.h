// The all-reduce on this machine: N islands, a thread each, over mutual TLS on 127.0.0.1 with an authority that lives
// as long as the benchmark. Verified first, then timed beside what the machine gives at best in the same run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/wire_format.h"
#include "net/base/abort_signal.h"
#include "net/base/result.h"
#include "net/wire/schedule.h"

namespace atl {

struct AllReduceBenchOptions {
  int islands = 4;
  std::uint64_t payload_bytes = 256u << 20;  // of fp32, each island
  WireFormat wire = WireFormat::kInt8Block;
  Schedule schedule = Schedule::kRing;
  int connections_per_edge = 2;
  int threads = 0;  // of each island; 0: as AllReduceSpec chooses
  int repeat = 5;
};

struct AllReduceBenchResult {
  double relative_error = 0;  // of the mean, against the exact one
  // Of each all-reduce, to the last island: from the inputs in memory to the mean as fp32 in memory.
  std::vector<double> seconds;
  double cpu_seconds_per_island = 0;         // of one all-reduce, mean
  std::uint64_t extra_bytes_per_island = 0;  // resident at the peak, above inputs and results
  std::uint64_t sent_bytes_per_island = 0;
  double memcpy_seconds = 0;  // of one payload, one thread
  double tcp_seconds = 0;     // of the bytes that the islands send, as plain TCP round the same ring
  std::string congestion_control;
};

Result<AllReduceBenchResult> run_all_reduce_bench(const AllReduceBenchOptions& options, const AbortSignal& interrupt);

}  // namespace atl
