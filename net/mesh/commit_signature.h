// The hub's signature under a commit: what makes the record of a round worth something to others, a hub restored from
// an old backup among them. No state; any thread.
#pragma once

#include <string>

#include "net/base/result.h"
#include "net/tls/identity.h"
#include "net/wire/mesh.h"

namespace atl {

// What belongs into commit.signature, over every other field of it. `hub`: the hub's own identity.
Result<std::string> sign_commit(const Identity& hub, const HubCommit& commit);

// That the hub of the run that `self` belongs to signed the commit as it stands. `hub_certificate_pem`: see
// verify_hub_signature. kCorrupt or kCertificate, naming the round.
Status verify_commit(const Identity& self, const std::string& hub_certificate_pem, const HubCommit& commit);

// And its epoch, by the certificate in it.
Status verify_epoch(const Identity& self, const SignedEpoch& epoch);

}  // namespace atl
