// Fetches outer step 0 from the hub that has its parameters (base_model.h), over HTTPS, a chunk at a time, each
// verified. What `plan` has is not fetched again, and what came stays there for the next try. The island's thread;
// blocks.
#pragma once

#include <functional>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/base/download_pace.h"
#include "net/base/result.h"
#include "net/https/fetch_progress.h"
#include "net/recovery/fetch_plan.h"
#include "net/tls/identity.h"

namespace atl {

// What `plan` lacks of `target`, from the first of the hub's addresses that serves it. kNotFound when `superseded` (may
// be empty) says that the hub names another state; kCorrupt when the hub has no copy of the model, or another one,
// which its operator can mend; kPermissionDenied when the hub does not know this island; kAborted; else the network's
// error. `progress` in bytes of what the hub sends. `download`: what the owner lets the island receive; null: no limit.
Status fetch_base_model(const Identity& self, const std::vector<Address>& hub, const HeldState& target, FetchPlan& plan,
                        const AbortSignal& abort, const FetchProgress& progress,
                        const std::function<bool()>& superseded = {}, DownloadPace* download = nullptr);

}  // namespace atl
