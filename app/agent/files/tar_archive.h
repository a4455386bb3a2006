// A tar archive (POSIX ustar) of a few files, made in memory. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace atl {

class TarArchive {
 public:
  explicit TarArchive(std::int64_t unix_seconds) : time_(unix_seconds) {}

  // `name`: at most 99 bytes, without a leading slash.
  void add(std::string_view name, std::string_view content);
  std::string take();  // the whole archive

 private:
  const std::int64_t time_;
  std::string bytes_;
};

}  // namespace atl
