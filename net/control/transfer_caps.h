// What an island's owner lets it send and receive at the moment: said by its agent, who knows the hours, followed by
// its trainer, and shown. Plain values; any thread.
#pragma once

#include <cstdint>
#include <optional>

namespace atl {

struct TransferCaps {
  std::optional<double> upload = {}, download = {};  // bytes/s of all transfers together; empty: no limit

  bool operator==(const TransferCaps&) const = default;
};

// As `state.get` has it: with what comes next.
struct TransferCapView {
  std::optional<double> bytes_per_second = {};  // empty: no limit
  std::optional<std::int64_t> until = {};       // seconds since 1970; empty: it holds at every hour

  bool operator==(const TransferCapView&) const = default;
};

}  // namespace atl
