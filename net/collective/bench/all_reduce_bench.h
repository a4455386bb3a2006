// How fast the ring is on this machine: N islands in this process, each with its own port on 127.0.0.1, certificate and
// threads, over TLS as everywhere. What `atoll bench all-reduce` and tests/bench run. Verifies before it measures.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/wire_format.h"
#include "net/base/result.h"

namespace atl {

struct AllReduceBenchOptions {
  int islands = 4;
  std::int64_t payload_numel = std::int64_t{64} << 20;  // 256 MiB of fp32 an island
  WireFormat wire = WireFormat::kInt8Block;
  int connections_per_edge = 2;
  int threads = 0;  // an island; 0: as AllReduceSpec chooses
  int repeats = 5;  // timed, after one that is verified and warms up
};

struct AllReduceBenchResults {
  std::vector<double> seconds;      // of each repeat: until the slowest island has the mean and its digest
  std::vector<double> cpu_seconds;  // of each repeat: user and system, all islands together
  double relative_error = 0;        // root mean square, against the exact mean
  std::uint64_t bytes_sent = 0;     // an island, before TLS
  std::uint64_t peak_bytes = 0;     // resident at most, inputs and results of all islands included
  std::uint64_t held_bytes = 0;     // those inputs and results
  std::string congestion_control;
  // Limits measured in the same run:
  double memcpy_seconds = 0;            // of one island's payload
  double raw_tcp_bytes_per_second = 0;  // one plain connection on 127.0.0.1
};

double median(std::vector<double> values);  // not empty

// kInternal when members end with different bytes or the mean is wrong.
Result<AllReduceBenchResults> run_all_reduce_bench(const AllReduceBenchOptions& options);

}  // namespace atl
