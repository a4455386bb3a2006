#include "net/enrol/certificate_renewal.h"

#include "net/https/hub_get.h"

namespace atl {
namespace {

constexpr std::uint64_t kMaxAnswerBytes = 8 * 1024;

}  // namespace

Result<Identity> renew_certificate(const Identity& self, const std::vector<Address>& hub, Deadline deadline,
                                   const AbortSignal& abort) {
  const auto renewed = [&]() -> Result<Identity> {
    ATOLL_ASSIGN_OR_RETURN(const std::string pem,
                           get_from_hub(self, hub, "/certificate", kMaxAnswerBytes, deadline, abort));
    return with_certificate(self, pem);
  };
  auto identity = renewed();
  if (identity.ok()) return identity;
  return identity.error().with_context("cannot renew this island's certificate");
}

}  // namespace atl
