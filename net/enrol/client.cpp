#include "net/enrol/client.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "net/base/backoff.h"
#include "net/tls/context.h"
#include "net/tls/signature.h"
#include "net/tls/x509.h"
#include "net/transport/tls_connection.h"
#include "net/wire/enrol.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kAnswerAfterAbort{3};
constexpr std::chrono::seconds kBeforeAnotherTry{1};

Deadline at_most(std::chrono::milliseconds duration, Deadline deadline) {
  return Deadline::after(duration).but_not_after(deadline);
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
    return Error{ErrorCode::kCorrupt, fmt::format("the hub sent a certificate that cannot be used: {}", what)};
  };
  if (public_key_digest(authority.get()) != invite.authority_pin) return wrong("its authority is not the invite's");
  if (X509_verify(certificate.get(), X509_get0_pubkey(authority.get())) != 1)
    return wrong("its authority did not sign it");
  if (X509_check_private_key(certificate.get(), key.get()) != 1) return wrong("it is for another key");
  if (name != grant.island.value) return wrong("it is for another name");
  if (organisation_of(authority.get()) != invite.run_id) return wrong("its authority is another run's");
  return Identity{IslandId{name}, invite.run_id, key_pem, grant.certificate_pem, grant.authority_pem};
}

// `unsettled`: set when the request was sent and it is not known what became of it, or the hub could not look at it.
Result<Enrolment> enrol_at(const Address& address, const Invite& invite, const std::string& display_name,
                           const KeyAndRequest& key, Deadline deadline, const AbortSignal* abort, bool& unsettled) {
  ATOLL_ASSIGN_OR_RETURN(TlsConnection hub, connect(address, invite, deadline, abort));
  const EnrolRequest request{kEnrolVersion, invite.run_id, invite.id, invite.secret, key.request_pem, display_name};
  const Result<Bytes> body = exchange(hub, encode_frame(request), deadline, abort);
  if (!body.ok()) {
    unsettled = unsettled || body.error().code == ErrorCode::kPeerLost || body.error().code == ErrorCode::kTimeout;
    return body.error();
  }
  ATOLL_ASSIGN_OR_RETURN(EnrolResponse response, decode_enrol_response(*body));
  if (const Error* refusal = std::get_if<Error>(&response)) {
    unsettled = unsettled || refusal->code == ErrorCode::kTimeout;
    return *refusal;
  }
  const auto& grant = std::get<EnrolGrant>(response);
  ATOLL_ASSIGN_OR_RETURN(Identity identity, checked_identity(invite, key.key_pem, grant));
  return Enrolment{std::move(identity), grant.hub.empty() ? invite.hub : grant.hub};
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

// Perhaps the hub's address is another's by now; perhaps somebody on the way answered once in its place.
bool is_another_authority(ErrorCode code) {
  return code == ErrorCode::kPinMismatch || code == ErrorCode::kInviteOtherRun;
}

// Whether another try, or another of the hub's addresses, may do better.
bool is_about_this_address(ErrorCode code) {
  return code == ErrorCode::kUnreachable || code == ErrorCode::kTimeout || code == ErrorCode::kPeerLost ||
         code == ErrorCode::kProtocol || code == ErrorCode::kCertificate || is_another_authority(code);
}

Status pause(std::chrono::milliseconds duration, Deadline deadline, const AbortSignal* abort) {
  const Deadline end = at_most(duration, deadline);
  while (!end.expired()) {
    pollfd aborted{abort == nullptr ? -1 : abort->fd(), POLLIN, 0};
    if (::poll(&aborted, 1, end.poll_milliseconds()) > 0) return Error{ErrorCode::kAborted, abort->reason()};
  }
  return ok_status();
}

struct Tried {
  Address address;
  std::optional<Error> failed = {};  // last
  bool is_another() const { return failed && is_another_authority(failed->code); }
};

Error gave_up(const Invite& invite, const std::vector<Tried>& all) {
  // More worth telling than that another address does not answer.
  const auto another = std::ranges::find_if(all, &Tried::is_another);
  if (another != all.end()) return *another->failed;
  std::string failures;
  for (const Tried& one : all) {
    const std::string why = one.failed ? one.failed->message : "there was no time to try it";
    failures += fmt::format("{}{}: {}", failures.empty() ? "" : "; ", to_string(one.address), why);
  }
  return Error{
      ErrorCode::kUnreachable,
      fmt::format("cannot reach the hub of run {}: {}; check this machine's network, and whether the hub runs and its "
                  "port is open",
                  invite.run_id, failures)};
}

// False when there is no time for it, or it was given up.
bool wait_before_another_try(Deadline deadline, const AbortSignal* abort) {
  const Deadline until = at_most(kBeforeAnotherTry, deadline);
  pollfd given_up{abort != nullptr ? abort->fd() : -1, POLLIN, 0};
  while (!until.expired() && (abort == nullptr || !abort->raised())) ::poll(&given_up, 1, until.poll_milliseconds());
  return !deadline.expired() && (abort == nullptr || !abort->raised());
}

// `at` of each of the invite's addresses in turn, until one does or says what no other would change; and again, for a
// connection may break at any time.
template <class T, class At>
Result<T> try_addresses(const Invite& invite, Deadline deadline, const AbortSignal* abort,
                        const EnrolPatience& patience, At at) {
  std::vector<Tried> all;
  for (const Address& address : invite.hub) all.push_back({address});
  Backoff pauses(patience.first_pause, patience.longest_pause);
  for (int round = 0; round < patience.tries; ++round) {
    if (round > 0) ATOLL_RETURN_IF_ERROR(pause(pauses.next(), deadline, abort));
    for (Tried& one : all) {
      if (one.failed && deadline.expired()) continue;
      Result<T> outcome = at(one.address, at_most(patience.most_per_address, deadline));
      if (outcome.ok() || !is_about_this_address(outcome.error().code)) return outcome;
      one.failed = outcome.error();
    }
    if (deadline.expired()) break;
  }
  return gave_up(invite, all);
}

}  // namespace

Result<Enrolment> enrol(const Invite& invite, const KeyAndRequest& key, const std::string& display_name,
                        Deadline deadline, const AbortSignal* abort, const EnrolPatience& patience) {
  for (;;) {
    bool unsettled = false;
    const auto at = [&](const Address& address, Deadline limit) {
      return enrol_at(address, invite, display_name, key, limit, abort, unsettled);
    };
    Result<Enrolment> outcome = try_addresses<Enrolment>(invite, deadline, abort, patience, at);
    const bool again = unsettled && !outcome.ok() && outcome.error().code == ErrorCode::kUnreachable;
    if (!again || !wait_before_another_try(deadline, abort)) return outcome;
  }
}

Result<Enrolment> enrol(const Invite& invite, const std::string& display_name, Deadline deadline,
                        const AbortSignal* abort, const EnrolPatience& patience) {
  return enrol(invite, make_signing_request(), display_name, deadline, abort, patience);
}

Result<HubDescription> describe_hub(const Invite& invite, Deadline deadline, const AbortSignal* abort,
                                    const EnrolPatience& patience) {
  const auto at = [&](const Address& address, Deadline limit) { return describe_at(address, invite, limit, abort); };
  return try_addresses<HubDescription>(invite, deadline, abort, patience, at);
}

Result<bool> is_member(const Identity& identity, const std::vector<Address>& hub, Deadline deadline,
                       const AbortSignal* abort) {
  constexpr std::string_view kRequest = "GET /check/ping HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n";
  constexpr std::string_view kMember = "HTTP/1.1 200", kNoMember = "HTTP/1.1 403";
  ATOLL_ASSIGN_OR_RETURN(const TlsContext context, TlsContext::client(identity, kAlpnHttp));
  Error failure{ErrorCode::kUnreachable, "no address of the hub is known"};
  for (const Address& address : hub) {
    const Deadline limit = at_most(EnrolPatience{}.most_per_address, deadline);
    Result<TlsConnection> connection = TlsConnection::connect(address, context, IslandId{kHubName}, limit, abort);
    if (!connection.ok()) {
      failure = connection.error();
      continue;
    }
    Bytes status(kMember.size());
    Status asked = connection->write_all(as_bytes(kRequest), limit, abort);
    if (asked.ok()) asked = connection->read_exact(status, limit, abort);
    if (asked.ok() && to_string(status) == kMember) return true;
    if (asked.ok() && to_string(status) == kNoMember) return false;
    failure = asked.ok() ? Error{ErrorCode::kProtocol, "the hub answers " + to_string(status)} : asked.error();
  }
  return failure;
}

}  // namespace atl
