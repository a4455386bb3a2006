// How much memory this process has now, for tests of growth.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace atl::test {

// What may be resident beside the program's own: a sanitizer shadows what is used, and keeps what was freed.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::size_t kOfSanitizer = std::size_t{512} << 20;
#else
inline constexpr std::size_t kOfSanitizer = 0;
#endif

inline std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace atl::test
