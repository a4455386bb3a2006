// Fetches the outer state from islands over HTTPS (libcurl), every byte verified.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/recovery/outer_state.h"
#include "net/tls/identity.h"

namespace atl {

struct StateSourceAddress {
  IslandId id;  // its certificate must carry this name
  Address address;
};

struct FetchOptions {
  std::chrono::milliseconds stall{10'000};  // without a byte for so long, a transfer is given up
  std::chrono::milliseconds retry_after{
      500};  // a source that failed is tried again, later after every failure in a row
  std::chrono::milliseconds hedge_after{3'000};  // a chunk that takes longer is asked of an idle source, too
  int max_failures = 4;                          // in a row, then the source of a state is dropped
  int transfers_per_source = 2;
  // Of the hub, which alone has the dataset: the longest pause between two tries; and the pauses where it is the hub's
  // file that is wrong, each of which costs a whole download.
  std::chrono::milliseconds longest_retry{60'000};
  std::chrono::milliseconds retry_wrong_after{60'000};
  std::chrono::milliseconds longest_retry_wrong{3'600'000};
};

using FetchProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)>;
// Why nothing comes, while it is tried again; empty: bytes come again.
using FetchTrouble = std::function<void(const std::string& why)>;

// The state with this version and tree hash (both from the hub), from whichever of the sources have it. A source that
// stalls (no byte for 10 s) or sends a wrong hash is replaced; kNotFound when all have moved on to a newer version: ask
// the hub again.
Result<FetchedState> fetch_state(const Identity& self, const std::vector<StateSourceAddress>& sources,
                                 OuterStep version, const std::string& tree_hash_hex, std::uint64_t numel,
                                 const AbortSignal& abort, const FetchProgress& progress,
                                 const FetchOptions& options = {});

// A file of the run's dataset from the hub (GET /data/<name>), to `destination`, verified. What has arrived is kept
// beside it (".part") through breaks, a full disk and restarts, and resumed. Tries until it has the file or `abort` is
// raised, whatever the network does and whatever is wrong with the hub's file; only this disk's errors (kDiskFull, kIo,
// ...) end it, and the hub's own word that this island is not in its roster (kPermissionDenied).
Status fetch_dataset_file(const Identity& self, const std::vector<Address>& hub, const std::string& name,
                          std::uint64_t size_bytes, const std::string& sha256_hex,
                          const std::filesystem::path& destination, const AbortSignal& abort,
                          const FetchProgress& progress, const FetchTrouble& trouble, const FetchOptions& options = {});

}  // namespace atl
