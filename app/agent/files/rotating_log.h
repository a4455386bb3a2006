// A log file that stays within a size: at the half of it the file becomes NAME.1, and the one that was so before is
// forgotten. Each line is written as it comes. One thread; one process a file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "net/base/result.h"
#include "net/base/unique_fd.h"

namespace atl {

class RotatingLog {
 public:
  // `max_bytes`: of the file and its predecessor together. The file is made 0600.
  static Result<RotatingLog> open(std::filesystem::path path, std::uint64_t max_bytes);

  // Appends text as it is, whole lines by preference. kDiskFull, kIo: it is lost, the next may work again.
  Status write(std::string_view text);

 private:
  RotatingLog(std::filesystem::path path, std::uint64_t max_bytes) : path_(std::move(path)), max_bytes_(max_bytes) {}
  Status open_file();

  std::filesystem::path path_;
  std::uint64_t max_bytes_;
  UniqueFd file_;
  std::uint64_t bytes_ = 0;
};

}  // namespace atl
