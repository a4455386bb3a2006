// File systems that only this process sees, and what it starts from then on: full ones, read-only ones. Root alone may
// make them. One thread, before there are others.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace atl::test {

// From now on mounts stay private. Else the reason, for a test that is skipped.
std::optional<std::string> enter_private_mounts();

// A small file system in memory at an empty directory, until its end. Aborts the test program when it cannot be.
class SmallDisk {
 public:
  SmallDisk(std::filesystem::path directory, std::uint64_t bytes);
  SmallDisk(SmallDisk&&) = delete;
  ~SmallDisk();

  void set_read_only(bool read_only) const;
  // Writes a file until nothing more fits; free_space() removes it.
  void fill() const;
  void free_space() const;

 private:
  std::filesystem::path filler() const { return directory_ / "filler"; }
  const std::filesystem::path directory_;
};

}  // namespace atl::test
