// The run's data on this island: of a run with sources fetched as its leases need it (streamed_batches.h), from mirrors
// that its owner allows, other islands and the hub; of one that was made before whole: what is missing is fetched from
// the hub, all of it is verified.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/data/chunk_exchange.h"
#include "net/data/chunk_store.h"
#include "net/data/dataset_fetch.h"
#include "net/data/mirror_policy.h"
#include "net/store/store_settings.h"
#include "net/tls/identity.h"
#include "net/wire/run_config.h"
#include "trainer/island/batch_source.h"
#include "trainer/island/transfer_news.h"

namespace atl {

struct RunDataOptions {
  const Identity& identity;  // outlives what is opened, as do the hub's addresses
  const std::vector<Address>& hub;
  std::filesystem::path directory;
  std::uint64_t cache_bytes = 0;  // that a run with sources may take there
  MirrorPolicy mirrors = MirrorPolicy::kHttps;
  StoreSettings store;               // of mirrors
  DownloadPace* download = nullptr;  // what the owner lets the island receive; null: no limit. Outlives what is opened
  ChunkExchange* islands =
      nullptr;           // asked for chunks, and gives them to others; null: neither. Outlives what is opened
  FetchTrouble trouble;  // see fetch_dataset_file, ChunkStoreParts; any thread, one at a time
  std::function<std::optional<Error>(bool in_vain)> ends_wait = {};  // see ChunkStoreParts
};

// Blocks while it downloads and hashes; `abort` ends it, and what is fetched later (kAborted), and outlives it. How the
// download goes is told by `news`, also that there is nothing to download; not how this ends.
Result<std::unique_ptr<BatchSource>> open_run_data(const RunConfig& run, const RunDataOptions& options,
                                                   const AbortSignal& abort, TransferNews& news,
                                                   const ChunkStoreOptions& fetch = {});

}  // namespace atl
