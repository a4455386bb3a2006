#include "net/enrol/client.h"

#include <fmt/format.h>
#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <optional>

#include "net/tls/context.h"
#include "net/tls/signature.h"
#include "net/tls/x509.h"
#include "net/transport/tls_connection.h"
#include "net/wire/enrol.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kMostPerAddress{10};

Deadline at_most(std::chrono::seconds duration, Deadline deadline) {
  return Deadline::at(std::min(Deadline::after(duration).when(), deadline.when()));
}

Result<EnrolResponse> exchange(TlsConnection& hub, const EnrolRequest& request, Deadline deadline,
                               const AbortSignal* abort) {
  ATOLL_RETURN_IF_ERROR(hub.write_all(encode_frame(request), deadline, abort));
  std::array<std::byte, kEnrolHeaderBytes> header{};
  ATOLL_RETURN_IF_ERROR(hub.read_exact(header, deadline, abort));
  ATOLL_ASSIGN_OR_RETURN(const std::size_t size, enrol_body_bytes(header));
  Bytes body(size);
  ATOLL_RETURN_IF_ERROR(hub.read_exact(body, deadline, abort));
  return decode_enrol_response(body);
}

// The hub is trusted to lead the run, not to be free of faults: what it sent must be usable before it is kept.
Result<Identity> checked_identity(const Invite& invite, const std::string& key_pem, const EnrolGrant& grant) {
  ATOLL_ASSIGN_OR_RETURN(const UniqueKey key, parse_key(key_pem));
  ATOLL_ASSIGN_OR_RETURN(const UniqueCertificate certificate, parse_certificate(grant.certificate_pem));
  ATOLL_ASSIGN_OR_RETURN(const UniqueCertificate authority, parse_certificate(grant.authority_pem));
  ATOLL_ASSIGN_OR_RETURN(const std::string name, certified_name(certificate.get()));
  const auto wrong = [](std::string_view what) {
    ERR_clear_error();
    return Error{ErrorCode::kCertificate, fmt::format("the hub sent a certificate that cannot be used: {}", what)};
  };
  if (public_key_digest(authority.get()) != invite.authority_pin) return wrong("its authority is not the invite's");
  if (X509_verify(certificate.get(), X509_get0_pubkey(authority.get())) != 1)
    return wrong("its authority did not sign it");
  if (X509_check_private_key(certificate.get(), key.get()) != 1) return wrong("it is for another key");
  if (name != grant.island.value) return wrong("it is for another name");
  if (organisation_of(authority.get()) != invite.run_id) return wrong("its authority is another run's");
  return Identity{IslandId{name}, invite.run_id, key_pem, grant.certificate_pem, grant.authority_pem};
}

Result<Enrolment> enrol_at(const Address& address, const Invite& invite, const std::string& display_name,
                           const KeyAndRequest& key, Deadline deadline, const AbortSignal* abort) {
  ATOLL_ASSIGN_OR_RETURN(const TlsContext context, TlsContext::enrol_client(invite.authority_pin, invite.run_id));
  ATOLL_ASSIGN_OR_RETURN(TlsConnection hub,
                         TlsConnection::connect(address, context, IslandId{kHubName}, deadline, abort));
  const EnrolRequest request{kEnrolVersion, invite.run_id, invite.id, invite.secret, key.request_pem, display_name};
  ATOLL_ASSIGN_OR_RETURN(EnrolResponse response, exchange(hub, request, deadline, abort));
  if (const Error* refusal = std::get_if<Error>(&response)) return *refusal;
  auto& grant = std::get<EnrolGrant>(response);
  ATOLL_ASSIGN_OR_RETURN(Identity identity, checked_identity(invite, key.key_pem, grant));
  return Enrolment{std::move(identity), grant.hub.empty() ? invite.hub : std::move(grant.hub)};
}

// Somebody does answer there: more worth telling than that another address does not.
bool is_another_authority(ErrorCode code) {
  return code == ErrorCode::kPinMismatch || code == ErrorCode::kInviteOtherRun;
}

// Whether another of the hub's addresses may do better.
bool is_about_this_address(ErrorCode code) {
  return code == ErrorCode::kUnreachable || code == ErrorCode::kTimeout || code == ErrorCode::kPeerLost ||
         code == ErrorCode::kProtocol || code == ErrorCode::kCertificate || is_another_authority(code);
}

}  // namespace

Result<Enrolment> enrol(const Invite& invite, const std::string& display_name, Deadline deadline,
                        const AbortSignal* abort) {
  const KeyAndRequest key = make_signing_request();
  std::optional<Error> another_authority;
  std::string failures;
  for (const Address& address : invite.hub) {
    auto enrolment = enrol_at(address, invite, display_name, key, at_most(kMostPerAddress, deadline), abort);
    if (enrolment.ok() || !is_about_this_address(enrolment.error().code)) return enrolment;
    if (is_another_authority(enrolment.error().code)) another_authority = enrolment.error();
    failures += fmt::format("{}{}: {}", failures.empty() ? "" : "; ", to_string(address), enrolment.error().message);
  }
  if (another_authority) return *another_authority;
  return Error{
      ErrorCode::kUnreachable,
      fmt::format("cannot reach the hub of run {}: {}; check this machine's network, and whether the hub runs and its "
                  "port is open",
                  invite.run_id, failures)};
}

}  // namespace atl
