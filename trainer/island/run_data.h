// The run's dataset on this island: what is missing is fetched from the hub, all of it is verified.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/data/dataset_fetch.h"
#include "net/tls/identity.h"
#include "net/wire/run_config.h"
#include "trainer/island/batch_source.h"
#include "trainer/island/transfer_news.h"

namespace atl {

// Blocks while it downloads and hashes; `abort` ends it (kAborted). How the download goes is told by `news`, also that
// there is nothing to download; not how this ends. `trouble`: see fetch_dataset_file.
Result<std::unique_ptr<BatchSource>> open_run_data(const RunConfig& run, const Identity& identity,
                                                   const std::vector<Address>& hub,
                                                   const std::filesystem::path& directory, const AbortSignal& abort,
                                                   TransferNews& news, const FetchTrouble& trouble);

}  // namespace atl
