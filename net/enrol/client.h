// The island's side of enrolment: from an invite to an identity. Blocks; any thread.
#pragma once

#include <string>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/deadline.h"
#include "net/base/result.h"
#include "net/tls/identity.h"
#include "net/wire/invite.h"

namespace atl {

struct Enrolment {
  Identity identity;         // of a key made here
  std::vector<Address> hub;  // where to find the hub from now on: never empty
};

// Tries the invite's addresses in turn; the secret goes only to a hub whose authority fits the pin. kPinMismatch,
// kInviteUsed, kInviteUnknown, kInviteExpired, kInviteOtherRun, kVersionUnsupported; kUnreachable says for each address
// whether its name, its port or TLS failed. Stores nothing: see save_identity.
Result<Enrolment> enrol(const Invite& invite, const std::string& display_name, Deadline deadline,
                        const AbortSignal* abort = nullptr);

}  // namespace atl
