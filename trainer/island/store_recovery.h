// The committed outer state from the run's object store, when no island that is here holds it: what was published there
// (net/store/published_state.h) counts only where it is the state that the hub names, chunk for chunk.
#pragma once

#include <functional>
#include <string>

#include "net/base/abort_signal.h"
#include "net/base/download_pace.h"
#include "net/base/result.h"
#include "net/https/fetch_progress.h"
#include "net/recovery/fetch_plan.h"
#include "net/store/store_settings.h"

namespace atl {

struct StoreRecovery {
  StoreSettings settings;            // the owner's
  std::string upload_store;          // RunConfig's
  DownloadPace* download = nullptr;  // what the owner lets the island receive; null: no limit
};

// What `plan` lacks of `target`. Blocks; the plan is the caller's thread's again afterwards. kNotFound when the store
// has no such state, or `superseded` says that the hub names another; kCorrupt when what lies there is another one;
// else as StoreClient::call.
Status fetch_from_store(const StoreRecovery& store, const HeldState& target, FetchPlan& plan, const AbortSignal& abort,
                        const FetchProgress& progress, const std::function<bool()>& superseded);

}  // namespace atl
