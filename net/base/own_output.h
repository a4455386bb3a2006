// The log of a program whose output goes to a file, kept within a size while it runs: what it says through libraries,
// and what it says when it crashes, goes there as well, so it is the file behind its output that changes and not the
// way of each message. Owns its thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "net/base/result.h"

namespace atl {

// When the file at `path` is more than `max_bytes`, it becomes `path`.1, the one that was so before is forgotten, and
// `descriptors` write to a new one. Nothing is done unless all of them write to that file. Nothing that is written
// meanwhile, by whatever thread, is lost.
Status rotate_output(const std::filesystem::path& path, std::uint64_t max_bytes, const std::vector<int>& descriptors);

class OwnOutput {
 public:
  // Looks after stdout and stderr until it goes. `max_bytes`: of the file and its predecessor together. An empty path,
  // or one that is not what they write to: there is nothing to be done.
  OwnOutput(std::filesystem::path path, std::uint64_t max_bytes,
            std::chrono::milliseconds look_every = std::chrono::seconds(1));

 private:
  std::jthread thread_;
};

}  // namespace atl
