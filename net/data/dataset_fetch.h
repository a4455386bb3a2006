// Fetches the run's dataset from the hub, which alone has it, over HTTPS: a file at a time, every byte verified,
// resumed where it broke off. Blocks; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/base/download_pace.h"
#include "net/base/result.h"
#include "net/https/fetch_progress.h"
#include "net/tls/identity.h"

namespace atl {

struct DatasetFetchOptions {
  std::chrono::milliseconds stall{10'000};     // without a byte for so long, a transfer is given up
  std::chrono::milliseconds retry_after{500};  // then it is tried again, later after every failure in a row:
  std::chrono::milliseconds longest_retry{60'000};
  // The same where it is the hub's file that is wrong: each of these tries costs a whole download.
  std::chrono::milliseconds retry_wrong_after{60'000};
  std::chrono::milliseconds longest_retry_wrong{3'600'000};
  DownloadPace* download = nullptr;  // what the owner lets the island receive; null: no limit. Outlives the fetch
};

// Why nothing comes, while it is tried again; empty: bytes come again.
using FetchTrouble = std::function<void(const std::string& why)>;

// A file of the run's dataset, FILE or SOURCE/FILE, from the hub (GET /data/<name>), to `destination`, verified. What
// has arrived is kept beside it (".part") through breaks, a full disk and restarts, and resumed. Tries until it has the
// file or `abort` is raised, whatever the network does and whatever is wrong with the hub's file; only this disk's
// errors (kDiskFull, kIo,
// ...) end it, and the hub's own word that this island is not in its roster (kPermissionDenied).
Status fetch_dataset_file(const Identity& self, const std::vector<Address>& hub, const std::string& name,
                          std::uint64_t size_bytes, const std::string& sha256_hex,
                          const std::filesystem::path& destination, const AbortSignal& abort,
                          const FetchProgress& progress, const FetchTrouble& trouble,
                          const DatasetFetchOptions& options = {});

}  // namespace atl
