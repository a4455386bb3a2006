#include "net/enrol/client.h"

#include <fmt/format.h>
#include <openssl/err.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "net/tls/context.h"
#include "net/tls/signature.h"
#include "net/tls/x509.h"
#include "net/transport/tls_connection.h"
#include "net/wire/enrol.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kMostPerAddress{10};
constexpr std::chrono::seconds kAnswerAfterAbort{3};

Deadline at_most(std::chrono::seconds duration, Deadline deadline) {
  return Deadline::at(std::min(Deadline::after(duration).when(), deadline.when()));
}

// Waits on, for a little while, when `abort` is raised.
Status read_answer(TlsConnection& hub, std::span<std::byte> into, Deadline deadline, const AbortSignal* abort) {
  while (!into.empty()) {
    const auto count = hub.read_some(into, deadline, abort);
    if (!count.ok() && count.error().code == ErrorCode::kAborted && abort != nullptr) {
      deadline = at_most(kAnswerAfterAbort, deadline);
      abort = nullptr;
      continue;
    }
    if (!count.ok()) return count.error();
    if (*count == 0) {
      return Error{ErrorCode::kPeerLost, fmt::format("{} closed the connection without an answer", hub.description())};
    }
    into = into.subspan(*count);
  }
  return ok_status();
}

// The body of the answer.
Result<Bytes> exchange(TlsConnection& hub, const Bytes& request, Deadline deadline, const AbortSignal* abort) {
  ATOLL_RETURN_IF_ERROR(hub.write_all(request, deadline, abort));
  std::array<std::byte, kEnrolHeaderBytes> header{};
  ATOLL_RETURN_IF_ERROR(read_answer(hub, header, deadline, abort));
  ATOLL_ASSIGN_OR_RETURN(const std::size_t size, enrol_body_bytes(header));
  Bytes body(size);
  ATOLL_RETURN_IF_ERROR(read_answer(hub, body, deadline, abort));
  return body;
}

Result<TlsConnection> connect(const Address& address, const Invite& invite, Deadline deadline,
                              const AbortSignal* abort) {
  ATOLL_ASSIGN_OR_RETURN(const TlsContext context, TlsContext::enrol_client(invite.authority_pin, invite.run_id));
  return TlsConnection::connect(address, context, IslandId{kHubName}, deadline, abort);
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
  ATOLL_ASSIGN_OR_RETURN(TlsConnection hub, connect(address, invite, deadline, abort));
  const EnrolRequest request{kEnrolVersion, invite.run_id, invite.id, invite.secret, key.request_pem, display_name};
  ATOLL_ASSIGN_OR_RETURN(const Bytes body, exchange(hub, encode_frame(request), deadline, abort));
  ATOLL_ASSIGN_OR_RETURN(EnrolResponse response, decode_enrol_response(body));
  if (const Error* refusal = std::get_if<Error>(&response)) return *refusal;
  auto& grant = std::get<EnrolGrant>(response);
  ATOLL_ASSIGN_OR_RETURN(Identity identity, checked_identity(invite, key.key_pem, grant));
  return Enrolment{std::move(identity), grant.hub.empty() ? invite.hub : std::move(grant.hub)};
}

Result<HubDescription> describe_at(const Address& address, const Invite& invite, Deadline deadline,
                                   const AbortSignal* abort) {
  ATOLL_ASSIGN_OR_RETURN(TlsConnection hub, connect(address, invite, deadline, abort));
  ATOLL_ASSIGN_OR_RETURN(const Bytes body,
                         exchange(hub, encode_frame(AboutRequest{kEnrolVersion, invite.run_id}), deadline, abort));
  ATOLL_ASSIGN_OR_RETURN(AboutResponse response, decode_about_response(body));
  HubDescription described{address, {invite.run_id, invite.run_name, {}, {}, 0}};
  if (const auto* run = std::get_if<RunAbout>(&response)) {
    described.run = *run;
  } else if (const Error& refusal = std::get<Error>(response); refusal.code != ErrorCode::kProtocol) {
    return refusal;
  }  // else a hub of before, which reads no such request; but it is the invite's
  if (described.run.run_id == invite.run_id) return described;
  return Error{ErrorCode::kProtocol,
               fmt::format("the hub speaks of run {}, which its authority does not lead", described.run.run_id)};
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

// `at` of each of the invite's addresses in turn, until one does or says what no other would change.
template <class T, class At>
Result<T> try_addresses(const Invite& invite, Deadline deadline, At at) {
  std::optional<Error> another_authority;
  std::string failures;
  for (const Address& address : invite.hub) {
    Result<T> outcome = at(address, at_most(kMostPerAddress, deadline));
    if (outcome.ok() || !is_about_this_address(outcome.error().code)) return outcome;
    if (is_another_authority(outcome.error().code)) another_authority = outcome.error();
    failures += fmt::format("{}{}: {}", failures.empty() ? "" : "; ", to_string(address), outcome.error().message);
  }
  if (another_authority) return *another_authority;
  return Error{
      ErrorCode::kUnreachable,
      fmt::format("cannot reach the hub of run {}: {}; check this machine's network, and whether the hub runs and its "
                  "port is open",
                  invite.run_id, failures)};
}

}  // namespace

Result<Enrolment> enrol(const Invite& invite, const KeyAndRequest& key, const std::string& display_name,
                        Deadline deadline, const AbortSignal* abort) {
  return try_addresses<Enrolment>(invite, deadline, [&](const Address& address, Deadline limit) {
    return enrol_at(address, invite, display_name, key, limit, abort);
  });
}

Result<Enrolment> enrol(const Invite& invite, const std::string& display_name, Deadline deadline,
                        const AbortSignal* abort) {
  return enrol(invite, make_signing_request(), display_name, deadline, abort);
}

Result<HubDescription> describe_hub(const Invite& invite, Deadline deadline, const AbortSignal* abort) {
  return try_addresses<HubDescription>(invite, deadline, [&](const Address& address, Deadline limit) {
    return describe_at(address, invite, limit, abort);
  });
}

}  // namespace atl
