// The island's side of enrolment: from an invite to an identity. Blocks; any thread.
#pragma once

#include <chrono>
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

// How often a person who waits is kept waiting: each of the invite's addresses is asked so many times.
struct EnrolPatience {
  int tries = 5;
  std::chrono::milliseconds first_pause{250};  // before all addresses are asked once more
  std::chrono::milliseconds longest_pause{2'000};
  std::chrono::milliseconds most_per_address{10'000};
};

// Tries the invite's addresses in turn, and again where the network failed; the secret goes only to a hub whose
// authority fits the pin. What that hub answers is final: kInviteUsed, kInviteUnknown, kInviteExpired,
// kVersionUnsupported. An address where another authority answers, or the hub of another run, is asked again like any
// other, for somebody on the way may have answered once; kPinMismatch, kInviteOtherRun when no other did better.
// kUnreachable says for each address whether its name, its port or TLS failed. Stores nothing: see
// save_identity. An answer may have been lost after the hub had granted it: what asks again shows the same key.
//
// The request is sent again, until `deadline`, when it is not known what became of it: it has the same key, which costs
// no second use. kConflict: this key will never be an island by this invite; another may.
//
// `abort` ends it with kAborted, but for this: the answer to a request that was sent is waited for some seconds more,
// for the hub may have burnt a use of the invite. Then it is ok although `abort` was raised.
Result<Enrolment> enrol(const Invite& invite, const KeyAndRequest& key, const std::string& display_name,
                        Deadline deadline, const AbortSignal* abort = nullptr, const EnrolPatience& patience = {});
// With a key made for it.
Result<Enrolment> enrol(const Invite& invite, const std::string& display_name, Deadline deadline,
                        const AbortSignal* abort = nullptr, const EnrolPatience& patience = {});

struct HubDescription {
  Address address;  // of the invite's: the one that answered
  RunAbout run;     // of a hub that does not say: id and name as the invite has them
};

// Which run the invite is for, as the hub says that fits its pin. Nothing secret is sent. Errors as enrol() has them.
Result<HubDescription> describe_hub(const Invite& invite, Deadline deadline, const AbortSignal* abort = nullptr,
                                    const EnrolPatience& patience = {});

// Whether the hub at one of these addresses, of this identity's run, still has the island in its roster. An error: it
// could not be asked.
Result<bool> is_member(const Identity& identity, const std::vector<Address>& hub, Deadline deadline,
                       const AbortSignal* abort = nullptr);

}  // namespace atl
