// Fetches the outer state from islands over HTTPS (libcurl), every byte verified.
#pragma once

#include <filesystem>
#include <functional>
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

struct FetchedState {
  OuterStep version;
  std::vector<float> parameters;
  std::vector<float> momentum;
};

using FetchProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)>;

// The state with this version and tree hash (both from the hub), from whichever of the sources have it. A source that stalls
// (no byte for 10 s) or sends a wrong hash is replaced; kNotFound when all have moved on to a newer version: ask the hub again.
Result<FetchedState> fetch_state(const Identity& self, const std::vector<StateSourceAddress>& sources, OuterStep version,
                                 const std::string& tree_hash_hex, std::uint64_t numel, const AbortSignal& abort,
                                 const FetchProgress& progress);

// A file of the run's dataset from the hub (GET /data/<name>), to `destination`; resumes a partial download; verified.
Status fetch_dataset_file(const Identity& self, const std::vector<Address>& hub, const std::string& name,
                          std::uint64_t size_bytes, const std::string& sha256_hex, const std::filesystem::path& destination,
                          const AbortSignal& abort, const FetchProgress& progress);

}  // namespace atl
