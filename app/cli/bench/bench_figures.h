// Sizes, times and what a process used, for benchmarks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "net/base/result.h"

namespace atl {

// "256MiB", "1GiB", "64 KiB", "1000000" (bytes). At most 16 GiB.
Result<std::uint64_t> parse_size(std::string_view text);

double median(std::vector<double> values);  // of at least one
double minimum(const std::vector<double>& values);

struct ProcessUse {
  double cpu_seconds = 0;                 // user and system, all threads
  std::uint64_t resident_bytes = 0;       // now
  std::uint64_t peak_resident_bytes = 0;  // since the start, or since reset_peak()
};
ProcessUse process_use();
// That a program can still have without swapping; 0: not known.
std::uint64_t available_memory_bytes();
void reset_peak();  // does nothing where the kernel does not let us

// Calls work(i) for each i below `count`, at once, the first on this thread. Returns seconds until all have returned.
double seconds_on_threads(int count, const std::function<void(std::size_t)>& work);

// What the machine gives at best, single-threaded, in bytes a second of the source.
double memcpy_bytes_per_second(std::uint64_t bytes, int repeats);

}  // namespace atl
