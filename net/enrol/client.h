// The island's side of enrolment: from an invite to an identity. Blocks; any thread.
#pragma once

#include <string>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/deadline.h"
#include "net/base/result.h"
#include "net/tls/identity.h"
#include "net/tls/signature.h"
#include "net/wire/enrol.h"
#include "net/wire/invite.h"

namespace atl {

struct Enrolment {
  Identity identity;         // of a key made here
  std::vector<Address> hub;  // where to find the hub from now on: never empty
};

// Tries the invite's addresses in turn; the secret goes only to a hub whose authority fits the pin. kPinMismatch,
// kInviteUsed, kInviteUnknown, kInviteExpired, kInviteOtherRun, kVersionUnsupported; kUnreachable says for each address
// whether its name, its port or TLS failed. Stores nothing: see save_identity.
//
// `abort` ends it with kAborted, but for this: the answer to a request that was sent is waited for some seconds more,
// for the hub may have burnt a use of the invite. Then it is ok although `abort` was raised.
Result<Enrolment> enrol(const Invite& invite, const KeyAndRequest& key, const std::string& display_name,
                        Deadline deadline, const AbortSignal* abort = nullptr);
// With a key made for it.
Result<Enrolment> enrol(const Invite& invite, const std::string& display_name, Deadline deadline,
                        const AbortSignal* abort = nullptr);

struct HubDescription {
  Address address;  // of the invite's: the one that answered
  RunAbout run;     // of a hub that does not say: id and name as the invite has them
};

// Which run the invite is for, as the hub says that fits its pin. Nothing secret is sent. Errors as enrol() has them.
Result<HubDescription> describe_hub(const Invite& invite, Deadline deadline, const AbortSignal* abort = nullptr);

}  // namespace atl
