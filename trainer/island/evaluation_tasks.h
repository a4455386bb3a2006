// The run's tasks on this island: fetched from its hub, verified, and turned into tokens with the run's tokenizer.
// Block on the network and the disk; any thread.
#pragma once

#include <filesystem>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/base/download_pace.h"
#include "net/model/config.h"
#include "net/tls/identity.h"
#include "net/wire/run_config.h"
#include "trainer/evaluate/evaluate_tasks.h"

namespace atl {

// `directory`: where the run's dataset lies, with its tokenizer. Tries to get the files until `abort` is raised
// (kAborted), as long as the hub's do not come. `download`: what the owner lets the island receive; null: no limit.
Status fetch_run_tasks(const RunEvaluation& evaluation, const Identity& self, const std::vector<Address>& hub,
                       const std::filesystem::path& directory, const AbortSignal& abort,
                       DownloadPace* download = nullptr);
// Of files that are there, in the run's order. kCorrupt, kInvalidArgument: they are not those of the run, or no
// questions to this model.
Result<TokenTasks> load_run_tasks(const RunConfig& run, const ModelConfig& model,
                                  const std::filesystem::path& directory);

}  // namespace atl
