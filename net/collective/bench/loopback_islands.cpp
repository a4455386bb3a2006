#include "net/collective/bench/loopback_islands.h"

#include <thread>

#include "net/tls/authority.h"
#include "net/tls/signature.h"

namespace atl {
namespace {

Result<Identity> enrol(const CertificateAuthority& authority, const Validity& validity) {
  KeyAndRequest made = make_signing_request();
  Identity identity;
  identity.name = random_island_id();
  identity.run = authority.run_id();
  ATOLL_ASSIGN_OR_RETURN(identity.certificate_pem, authority.sign_request(made.request_pem, identity.name, validity));
  identity.key_pem = std::move(made.key_pem);
  identity.authority_pem = authority.certificate_pem();
  return identity;
}

}  // namespace

Result<LoopbackIslands> LoopbackIslands::start(int count) {
  ATOLL_ASSIGN_OR_RETURN(const CertificateAuthority authority, CertificateAuthority::create("bench"));
  const Validity validity = Validity::starting(std::chrono::system_clock::now(), std::chrono::hours(24));
  LoopbackIslands all;
  for (int i = 0; i < count; ++i) {
    ATOLL_ASSIGN_OR_RETURN(const Identity identity, enrol(authority, validity));
    ATOLL_ASSIGN_OR_RETURN(TlsContext dial_context, TlsContext::client(identity, kAlpnRing));
    ATOLL_ASSIGN_OR_RETURN(TlsContext server_context, TlsContext::island_server(identity));
    auto island = std::make_unique<Island>();
    island->id = identity.name;
    island->dial_context.emplace(std::move(dial_context));
    island->ring.emplace(island->id, island->inbox, *island->dial_context);
    PeerListenerOptions options;
    options.bind = Address{"127.0.0.1", 0};
    ATOLL_ASSIGN_OR_RETURN(island->listener,
                           PeerListener::start(
                               options, std::move(server_context), [](const PeerCertificate&) { return ok_status(); },
                               island->inbox, [](TlsConnection, const AbortSignal&) {}));
    all.islands_.push_back(std::move(island));
  }
  return all;
}

AllReduceSpec LoopbackIslands::spec() const {
  AllReduceSpec spec;
  spec.round = OuterStep{1};
  spec.attempt = Attempt{1};
  for (const auto& island : islands_) {
    spec.order.push_back({island->id, Address{"127.0.0.1", island->listener->port()}, 1.0});
  }
  return spec;
}

std::vector<std::variant<AllReduceReport, AllReduceFailure>> LoopbackIslands::run(
    const AllReduceSpec& spec, const std::vector<std::vector<float>>& inputs, std::vector<Bytes>& rooms) {
  std::vector<std::variant<AllReduceReport, AllReduceFailure>> outcomes(islands_.size());
  const AbortSignal never;
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < islands_.size(); ++i) {
    threads.emplace_back([&, i] { outcomes[i] = islands_[i]->ring->run(spec, inputs[i], rooms[i], never); });
  }
  threads.clear();
  return outcomes;
}

}  // namespace atl
