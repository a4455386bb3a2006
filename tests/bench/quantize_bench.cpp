// Time to encode and decode a wire format beside memcpy of the same bytes: verified first.
//   quantize_bench [wire = int8-block] [MiB of fp32 = 256] [threads = 1] [repeats = 7]
// ATOLL_KERNELS=plain|avx2|avx512 chooses the implementation.
#include <fmt/format.h>

#include <cstdlib>

#include "app/cli/bench/quantise_bench.h"

using namespace atl;

int main(int argc, char** argv) {
  QuantiseBenchOptions options;
  if (argc > 1) {
    const auto wire = wire_format_named(argv[1]);
    if (!wire) {
      fmt::print(stderr, "wire '{}' is not known: fp32, bf16, int8-block, int4-e3m0, int8-codebook\n", argv[1]);
      return 2;
    }
    options.wire = *wire;
  }
  if (argc > 2) options.payload_bytes = std::atoll(argv[2]) << 20;
  if (argc > 3) options.threads = std::atoi(argv[3]);
  if (argc > 4) options.repeats = std::atoi(argv[4]);

  const auto result = run_quantise_bench(options);
  if (!result) {
    fmt::print(stderr, "{}\n", result.error().message);
    return 1;
  }
  fmt::print("{}, {}, {} MiB, {} threads, median of {}\n", wire_format_name(options.wire), result->implementation,
             options.payload_bytes >> 20, options.threads, options.repeats);
  for (const OperationFigures& figures : result->operations) {
    fmt::print("  {:<20} {:7.2f} ms  {:6.2f} GB/s of input + output  {:.2f} x memcpy ({:.2f} ms)\n", figures.operation,
               figures.seconds * 1e3, figures.gb_per_second(), figures.of_memcpy(), figures.memcpy_seconds * 1e3);
  }
  return 0;
}
