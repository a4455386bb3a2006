// An island's certificate lives for weeks and is renewed while it is valid: the hub signs the same name and key anew
// for whoever proves that key in a handshake and is in the roster (GET /certificate). Blocks; any thread.
#pragma once

#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/base/deadline.h"
#include "net/base/result.h"
#include "net/tls/identity.h"

namespace atl {

// `self` with its new certificate, from whichever of the hub's addresses answers first. Stores nothing: see
// save_identity.
Result<Identity> renew_certificate(const Identity& self, const std::vector<Address>& hub, Deadline deadline,
                                   const AbortSignal& abort);

}  // namespace atl
