// The hub's side of enrolment, without sockets: makes invites, and turns a request with a good invite into a
// certificate. Used on the hub's thread; blocks for the disk only.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "net/base/address.h"
#include "net/enrol/invite_store.h"
#include "net/tls/authority.h"
#include "net/wire/enrol.h"
#include "net/wire/invite.h"

namespace atl {

using WallClock = std::function<std::chrono::system_clock::time_point()>;

// A fresh id and secret, written to the store before it is returned. kInvalidArgument without an address or uses, or
// when the run's name is too long.
Result<Invite> make_invite(const CertificateAuthority& authority, InviteStore& store, const std::string& run_name,
                           std::vector<Address> hub, std::uint32_t uses, std::chrono::sys_seconds expires);

class Enroller {
 public:
  // All outlive it. `hub`: the addresses that new islands are told.
  Enroller(const CertificateAuthority& authority, InviteStore& store, std::vector<Address> hub, WallClock clock,
           std::chrono::seconds certificate_lifetime = kIslandCertificateLifetime);

  // Burns a use of the invite only for a request that is otherwise good.
  EnrolResponse handle(const EnrolRequest& request);

 private:
  Result<EnrolGrant> grant(const EnrolRequest& request);

  const CertificateAuthority& authority_;
  InviteStore& store_;
  std::vector<Address> hub_;
  WallClock clock_;
  std::chrono::seconds certificate_lifetime_;
};

}  // namespace atl
