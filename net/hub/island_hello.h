// An island's first message, as the round coordinator takes it. Pure, but for a line in the log; any thread.
#pragma once

#include <string>

#include "net/check/admission.h"
#include "net/enrol/enrolment_store.h"
#include "net/mesh/coordinator_types.h"
#include "net/tls/identity.h"

namespace atl {

// `host`: where it comes from. kProtocol for what is no hello; the check policy's error for a machine that is not fit.
// Records that it shows count when this run's hub, `hub`, signed them, whoever brings them.
Result<IslandConnected> read_hello(const EnrolledIsland& island, const std::string& host, const std::string& text,
                                   const CheckPolicy& policy, const Identity& hub);

}  // namespace atl
