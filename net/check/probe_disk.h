// Measures the disk under a directory: what is free, and how fast bytes get to it for good. Writes a nameless file, so
// that nothing is left behind however this ends. Blocks; any thread.
#pragma once

#include <chrono>
#include <filesystem>

#include "net/base/abort_signal.h"
#include "net/base/deadline.h"
#include "net/check/facts.h"

namespace atl {

struct DiskProbe {
  std::uint64_t bytes = 256u << 20;  // at most, and no more than a tenth of what is free
  Deadline deadline = Deadline::after(std::chrono::seconds(10));
};

// `directory` need not exist: its nearest parent that does is looked at.
DiskFacts probe_disk(const std::filesystem::path& directory, const DiskProbe& probe, const AbortSignal& abort);

// Of the files in this directory; 0 where there is none. A file of several names counts once among them.
std::uint64_t bytes_in(const std::filesystem::path& directory);

}  // namespace atl
