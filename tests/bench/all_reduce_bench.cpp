// Time of one all-reduce of N islands in this process, over TLS on 127.0.0.1: verified first, then timed beside its
// limits.
//   all_reduce_bench [islands = 4] [values = 67108864] [int8-block | fp32] [connections an edge = 2] [repeats = 5]
//                    [threads an island = 0: chosen]
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "net/collective/bench/all_reduce_bench.h"

using namespace atl;

int main(int argc, char** argv) {
  AllReduceBenchOptions options;
  const auto argument = [&](int index, long long otherwise) {
    return argc > index ? std::atoll(argv[index]) : otherwise;
  };
  options.islands = static_cast<int>(argument(1, options.islands));
  options.payload_numel = argument(2, options.payload_numel);
  if (argc > 3 && std::string(argv[3]) == "fp32") options.wire = WireFormat::kFp32;
  options.connections_per_edge = static_cast<int>(argument(4, options.connections_per_edge));
  options.repeats = static_cast<int>(argument(5, options.repeats));
  options.threads = static_cast<int>(argument(6, options.threads));
  const auto run = run_all_reduce_bench(options);
  if (!run.ok()) {
    fmt::print("failed: {}\n", run.error().message);
    return 1;
  }
  const AllReduceBenchResults& results = *run;
  const double seconds = median(results.seconds);
  const double payload_bytes = static_cast<double>(options.payload_numel) * sizeof(float);
  const double wire_seconds = static_cast<double>(results.bytes_sent) / results.raw_tcp_bytes_per_second;
  fmt::print("{} islands, {:.0f} MiB of fp32, {}, {} connections an edge, {}, relative error {:.3g}\n", options.islands,
             payload_bytes / (1 << 20), options.wire == WireFormat::kFp32 ? "fp32" : "int8-block",
             options.connections_per_edge, results.congestion_control, results.relative_error);
  fmt::print("time      median {:.3f} s, min {:.3f} s: {:.2f} GB/s of fp32\n", seconds,
             std::ranges::min(results.seconds), payload_bytes / seconds / 1e9);
  fmt::print(
      "limits    memcpy of the payload {:.3f} s ({:.1f} x), an island's bytes over raw TCP {:.3f} s ({:.1f} x)\n",
      results.memcpy_seconds, seconds / results.memcpy_seconds, wire_seconds, seconds / wire_seconds);
  fmt::print("cost      {:.3f} CPU s an island, {:.0f} MiB at most above inputs and results of all islands\n",
             median(results.cpu_seconds) / options.islands,
             (static_cast<double>(results.peak_bytes) - static_cast<double>(results.held_bytes)) / (1 << 20));
  return 0;
}
