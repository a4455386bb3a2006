// A short answer of the hub's to one of its islands: a GET at its addresses in turn. Blocks; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/base/deadline.h"
#include "net/base/result.h"
#include "net/tls/identity.h"

namespace atl {

// The first body of HTTP status 200, of at most `max_bytes`. kAborted once `abort` is raised.
Result<std::string> get_from_hub(const Identity& self, const std::vector<Address>& hub, const std::string& path,
                                 std::uint64_t max_bytes, Deadline deadline, const AbortSignal& abort);

}  // namespace atl
