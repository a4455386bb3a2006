// The outer state with which a run begins: its seed and its model determine it, so the hub can know its hash without
// holding it, and needs nobody's word for it. Any thread; computes on all processors, some 27 s of one a billion
// parameters, and no less than the largest table takes; in some 32 MiB for each of them.
#pragma once

#include <string>

#include "net/base/result.h"
#include "net/hub/hub_store.h"
#include "net/wire/run_config.h"

namespace atl {

// Tree hash (net/recovery/outer_state.h), hex, of outer step 0: fresh parameters (net/model/initialise.h), or those
// that the hub has (base_model.h), zero momentum. kInvalidArgument for a model that Atoll does not compute.
Result<std::string> initial_state_hash(const RunConfig& run);
// The same, kept in the store.
Result<std::string> save_initial_state_hash(const RunConfig& run, HubStore& store);

}  // namespace atl
