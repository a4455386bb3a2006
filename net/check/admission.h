// Whether a run takes an island, by the rows of its check that the run's manifest requires. Pure; any thread.
#pragma once

#include "net/check/thresholds.h"
#include "net/wire/mesh.h"

namespace atl {

// What an island's hello tells of its last check. Only of one made for this run.
std::optional<std::vector<CheckedRow>> checked_rows(const CheckReport& report, std::string_view run_id);

// kPermissionDenied names the first required row that did not pass or warn, and what to do.
Status admit_checked(const CheckPolicy& policy, const std::optional<std::vector<CheckedRow>>& checked);

}  // namespace atl
