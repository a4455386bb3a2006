// What the island may send and receive now, by its owner's limits and the hour (limits.upload, limits.download and
// theirs by hours). The settings are read again when their files change, so that a new limit needs no restart. Owned by
// the agent, whose loop calls it: one thread.
#pragma once

#include <ctime>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "app/config/cap_hours.h"
#include "net/base/deadline.h"
#include "net/base/result.h"
#include "net/control/transfer_caps.h"

namespace atl {

struct CapRules {
  CapRule upload, download;
  bool operator==(const CapRules&) const = default;
};

class OwnersCaps {
 public:
  static constexpr std::chrono::seconds kLookEvery{1};  // at the files

  // read_again: the rules as `files` say them now; asked when one of these is another than before. Empty: never.
  OwnersCaps(CapRules rules, std::vector<std::filesystem::path> files, std::function<Result<CapRules>()> read_again);

  // Looks at the files, every kLookEvery.
  void turn(Clock::time_point now);

  // By this machine's clock, local time; tests pass theirs, seconds since 1970.
  TransferCaps at(std::time_t time) const;
  TransferCapView upload_view(std::time_t time) const { return view(rules_.upload, time); }
  TransferCapView download_view(std::time_t time) const { return view(rules_.download, time); }

  // Why a change of the settings is not followed, for the owner; empty: all is.
  const std::string& trouble() const { return trouble_; }

 private:
  struct Stamp {  // of a file; all zero: it is not there
    std::uint64_t inode = 0;
    std::int64_t seconds = 0, nanoseconds = 0, bytes = 0;
    bool operator==(const Stamp&) const = default;
  };
  std::vector<Stamp> stamps() const;
  static TransferCapView view(const CapRule& rule, std::time_t time);

  CapRules rules_;
  const std::vector<std::filesystem::path> files_;
  const std::function<Result<CapRules>()> read_again_;
  std::vector<Stamp> seen_;
  Clock::time_point look_at_{};
  std::string trouble_;
};

}  // namespace atl
