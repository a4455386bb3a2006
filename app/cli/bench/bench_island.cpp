#include "app/cli/bench/bench_island.h"

#include <fmt/format.h>

#include "net/tls/signature.h"

namespace atl {

Result<std::unique_ptr<BenchIsland>> BenchIsland::start(const Identity& identity, const Address& bind) {
  ATOLL_ASSIGN_OR_RETURN(TlsContext dial_context, TlsContext::client(identity, kAlpnRing));
  ATOLL_ASSIGN_OR_RETURN(TlsContext serve_context, TlsContext::island_server(identity));
  std::unique_ptr<BenchIsland> island(new BenchIsland(identity.name, std::move(dial_context)));
  PeerListenerOptions options;
  options.bind = bind;
  ATOLL_ASSIGN_OR_RETURN(island->listener_,
                         PeerListener::start(
                             options, std::move(serve_context), [](const PeerCertificate&) { return ok_status(); },
                             island->inbox_, [](TlsConnection, const AbortSignal&) {}));
  return island;
}

Result<std::vector<Identity>> make_bench_identities(int count) {
  ATOLL_ASSIGN_OR_RETURN(const CertificateAuthority authority, CertificateAuthority::create("bench"));
  const Validity validity = Validity::starting(std::chrono::system_clock::now(), std::chrono::hours(24));
  std::vector<Identity> identities;
  for (int i = 0; i < count; ++i) {
    KeyAndRequest made = make_signing_request();
    Identity identity;
    identity.name = IslandId{fmt::format("isl-{:016x}", i)};
    identity.run = authority.run_id();
    identity.key_pem = std::move(made.key_pem);
    identity.authority_pem = authority.certificate_pem();
    ATOLL_ASSIGN_OR_RETURN(identity.certificate_pem, authority.sign_request(made.request_pem, identity.name, validity));
    identities.push_back(std::move(identity));
  }
  return identities;
}

}  // namespace atl
