// Whether the files of the owner's settings are others than before: what may change while the agent runs is then read
// again, whoever wrote them. One thread, the agent's loop.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "net/base/deadline.h"

namespace atl {

class SettingsWatch {
 public:
  static constexpr std::chrono::seconds kLookEvery{1};

  // They need not be there. What they are now is known already.
  explicit SettingsWatch(std::vector<std::filesystem::path> files);

  // Looks, every kLookEvery: whether one is another than when it was last looked at.
  bool changed(Clock::time_point now);
  // At the next call, whenever the last one was.
  void look_now() { look_at_ = {}; }

 private:
  struct Stamp {  // of a file; all zero: it is not there
    std::uint64_t inode = 0;
    std::int64_t seconds = 0, nanoseconds = 0, bytes = 0;
    bool operator==(const Stamp&) const = default;
  };
  std::vector<Stamp> stamps() const;

  const std::vector<std::filesystem::path> files_;
  std::vector<Stamp> seen_;
  Clock::time_point look_at_{};
};

}  // namespace atl
