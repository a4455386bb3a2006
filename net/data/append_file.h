// A file that grows at its end, within a directory that takes its place only when it is whole, and that survives a
// kill: what was flushed is kept, what came after it is cut off. One thread.
#pragma once

#include <cstdint>
#include <filesystem>

#include "net/base/bytes.h"
#include "net/base/result.h"
#include "net/base/unique_fd.h"

namespace atl {

class AppendFile {
 public:
  // Cut, or made, to be `bytes` long. kCorrupt when it is shorter.
  static Result<AppendFile> open(const std::filesystem::path& path, std::uint64_t bytes);

  Status append(ByteView bytes);
  Status write_at(std::uint64_t offset, ByteView bytes);  // of what is there
  Status flush();                                         // to the disk
  std::uint64_t bytes() const { return bytes_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  AppendFile(std::filesystem::path path, UniqueFd fd, std::uint64_t bytes)
      : path_(std::move(path)), fd_(std::move(fd)), bytes_(bytes) {}

  std::filesystem::path path_;
  UniqueFd fd_;
  std::uint64_t bytes_ = 0;
};

}  // namespace atl
