// Files: read whole, replace atomically, map read-only. Errors name the path and say what to do.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "net/base/bytes.h"
#include "net/base/result.h"

namespace atl {

enum class FileMode { kPrivate = 0600, kPublic = 0644 };

// At most `max_bytes`; a larger file is an error (bytes from outside are bounded before they are believed).
Result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes = 64u << 20);

// Written beside, fsynced, renamed over (net/base/new_file.h): a crash or a full disk leaves the old file whole.
Status write_file_atomically(const std::filesystem::path& path, std::string_view content, FileMode mode);

// Creates missing parents, and flushes the directories in which it made one. New directories get `mode` 0700 when
// private.
Status make_directories(const std::filesystem::path& path, FileMode mode = FileMode::kPublic);

// The error of errno for `path`, with ENOSPC as kDiskFull, ENOENT as kNotFound, EACCES as kPermissionDenied.
Error errno_error(std::string_view action, const std::filesystem::path& path);

// A read-only memory mapping of a whole file.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  ByteView bytes() const { return {data_, size_}; }

 private:
  MappedFile(const std::byte* data, std::size_t size) : data_(data), size_(size) {}
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace atl
