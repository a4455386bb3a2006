// The hub's side of enrolment, without sockets: makes invites, and turns a request with a good invite into a
// certificate. Used on the hub's thread; blocks for the disk only.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "net/base/address.h"
#include "net/enrol/enrolment_store.h"
#include "net/tls/authority.h"
#include "net/wire/enrol.h"
#include "net/wire/invite.h"

namespace atl {

using WallClock = std::function<std::chrono::system_clock::time_point()>;

// A fresh id and secret, written to the store before it is returned. kInvalidArgument without an address or uses, or
// when the run's name is too long.
Result<Invite> make_invite(const CertificateAuthority& authority, EnrolmentStore& store, const std::string& run_name,
                           std::vector<Address> hub, std::uint32_t uses, std::chrono::sys_seconds expires);

class Enroller {
 public:
  // All outlive it. `hub`: the addresses that new islands are told.
  Enroller(const CertificateAuthority& authority, EnrolmentStore& store, std::vector<Address> hub, WallClock clock,
           std::chrono::seconds certificate_lifetime = kIslandCertificateLifetime);

  // Takes a use of the invite only for a request that is otherwise good, and enters the island with it. The same key
  // with the same invite is answered alike, with a fresh certificate, as long as the invite is good: the first answer
  // may have been lost. An error is the store's: nothing was granted, and nothing is said of the request.
  Result<EnrolResponse> handle(const EnrolRequest& request);

 private:
  const CertificateAuthority& authority_;
  EnrolmentStore& store_;
  std::vector<Address> hub_;
  WallClock clock_;
  std::chrono::seconds certificate_lifetime_;
};

}  // namespace atl
