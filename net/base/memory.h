// How much main memory this process may use: the machine's, or what its control groups allow where that is less. Reads
// files of /proc and /sys; any thread.
#pragma once

#include <cstdint>
#include <filesystem>

namespace atl {

struct UsableMemory {  // bytes
  std::uint64_t total = 0;
  std::uint64_t available = 0;  // without taking it from anybody; what this process holds is not in it
};

// `root`: where proc and sys are looked for. Zeros where the kernel does not say.
UsableMemory usable_memory(const std::filesystem::path& root = "/");

// Bytes of its own that this process holds now: files that it maps are not counted.
std::uint64_t own_memory(const std::filesystem::path& root = "/");

}  // namespace atl
