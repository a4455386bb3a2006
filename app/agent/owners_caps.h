// What the island may send and receive now, by its owner's limits and the hour (limits.upload, limits.download and
// theirs by hours). They may change at any time. Owned by the agent, whose loop calls it: one thread.
#pragma once

#include <ctime>
#include <string>

#include "app/config/cap_hours.h"
#include "net/base/result.h"
#include "net/control/transfer_caps.h"

namespace atl {

struct CapRules {
  CapRule upload, download;
  bool operator==(const CapRules&) const = default;
};

class OwnersCaps {
 public:
  explicit OwnersCaps(CapRules rules) : rules_(std::move(rules)) {}

  // After the settings changed. What could not be read changes nothing, and is told (trouble).
  void set(const Result<CapRules>& rules);

  // By this machine's clock, local time; tests pass theirs, seconds since 1970.
  TransferCaps at(std::time_t time) const;
  TransferCapView upload_view(std::time_t time) const { return view(rules_.upload, time); }
  TransferCapView download_view(std::time_t time) const { return view(rules_.download, time); }

  // Why a change of the settings is not followed, for the owner; empty: all is.
  const std::string& trouble() const { return trouble_; }

 private:
  static TransferCapView view(const CapRule& rule, std::time_t time);

  CapRules rules_;
  std::string trouble_;
};

}  // namespace atl
