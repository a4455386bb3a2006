// Fetches the outer state from islands over HTTPS (libcurl), every byte verified.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/base/result.h"
#include "net/https/fetch_progress.h"
#include "net/recovery/outer_state.h"
#include "net/tls/identity.h"

namespace atl {

struct StateSourceAddress {
  IslandId id;  // its certificate must carry this name
  Address address;
};

struct StateFetchOptions {
  std::chrono::milliseconds stall{10'000};  // without a byte for so long, a transfer is given up
  std::chrono::milliseconds retry_after{
      500};  // a source that failed is tried again, later after every failure in a row
  std::chrono::milliseconds hedge_after{3'000};  // a chunk that takes longer is asked of an idle source, too
  int max_failures = 4;                          // in a row, then a source is dropped
  int transfers_per_source = 2;
};

// The state with this version and tree hash (both from the hub), from whichever of the sources have it. A source that
// stalls (no byte for 10 s) or sends a wrong hash is replaced; kNotFound when all have moved on to a newer version: ask
// the hub again.
Result<FetchedState> fetch_state(const Identity& self, const std::vector<StateSourceAddress>& sources,
                                 OuterStep version, const std::string& tree_hash_hex, std::uint64_t numel,
                                 const AbortSignal& abort, const FetchProgress& progress,
                                 const StateFetchOptions& options = {});

}  // namespace atl
