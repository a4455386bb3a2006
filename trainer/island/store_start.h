// The parameters with which a run begins that goes on from another's published state (RunConfig::initial_state):
// fetched from the object store that the run's configuration names, every chunk verified, for as long as it takes. The
// island's thread; blocks.
#pragma once

#include <functional>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/download_pace.h"
#include "net/base/result.h"
#include "net/store/store_settings.h"
#include "net/wire/run_config.h"
#include "trainer/island/transfer_news.h"

namespace atl {

// [numel] in canonical order. What the store or the way to it does is tried again, with `trouble` (empty: none) told
// each time; kAborted once `abort` is raised, kInvalidArgument when the published state is of a model of another size,
// or its address none. `download`: what the owner lets the island receive; null: no limit.
Result<std::vector<float>> fetch_initial_parameters(const RunConfig& run, std::uint64_t numel,
                                                    const StoreSettings& settings, const AbortSignal& abort,
                                                    TransferNews& news,
                                                    const std::function<void(const std::string&)>& trouble,
                                                    DownloadPace* download = nullptr);

}  // namespace atl
