#include "net/enrol/enroller.h"

#include <fmt/format.h>
#include <openssl/rand.h>

#include "net/base/encoding.h"
#include "net/tls/x509.h"

namespace atl {
namespace {

constexpr std::size_t kInviteIdBytes = 6;
constexpr std::size_t kSecretBytes = 24;

Bytes random_bytes(std::size_t count) {
  Bytes bytes(count);
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) != 1) {
    detail::die_on_wrong_access("the machine has randomness", "RAND_bytes failed");
  }
  return bytes;
}

Result<std::string> key_sha256_of(const std::string& certificate_pem) {
  ATOLL_ASSIGN_OR_RETURN(const UniqueCertificate certificate, parse_certificate(certificate_pem));
  return to_hex(public_key_digest(certificate.get()));
}

}  // namespace

Result<Invite> make_invite(const CertificateAuthority& authority, EnrolmentStore& store, const std::string& run_name,
                           std::vector<Address> hub, std::uint32_t uses, std::chrono::sys_seconds expires) {
  if (uses == 0) return Error{ErrorCode::kInvalidArgument, "an invite is for at least one use"};
  Invite invite;
  invite.hub = std::move(hub);
  invite.run_id = authority.run_id();
  invite.run_name = run_name;
  invite.authority_pin = authority.pin();
  invite.id = hex_encode(random_bytes(kInviteIdBytes));
  invite.secret = random_bytes(kSecretBytes);
  invite.expires = expires;
  const auto text = encode_invite(invite);
  if (!text.ok()) return text.error();
  ATOLL_RETURN_IF_ERROR(store.create({invite.id, sha256(invite.secret), uses, expires}));
  return invite;
}

Enroller::Enroller(const CertificateAuthority& authority, EnrolmentStore& store, std::vector<Address> hub,
                   WallClock clock, std::chrono::seconds certificate_lifetime)
    : authority_(authority),
      store_(store),
      hub_(std::move(hub)),
      clock_(std::move(clock)),
      certificate_lifetime_(certificate_lifetime) {}

Result<EnrolResponse> Enroller::handle(const EnrolRequest& request) {
  if (request.run_id != authority_.run_id()) {
    return EnrolResponse(Error{
        ErrorCode::kInviteOtherRun,
        fmt::format("this invite is for another run; the hub at this address leads run {}", authority_.run_id())});
  }
  const auto now = clock_();
  const Validity validity = authority_.validity(now, certificate_lifetime_);
  EnrolledIsland newcomer{random_island_id(), request.display_name, {}, std::chrono::floor<std::chrono::seconds>(now)};
  // Signed before the invite is burnt, so that a request that cannot be signed costs no use; shown only after.
  Result<std::string> certificate = authority_.sign_request(request.request_pem, newcomer.id, validity);
  if (!certificate.ok()) return EnrolResponse(certificate.error());
  ATOLL_ASSIGN_OR_RETURN(newcomer.key_sha256, key_sha256_of(*certificate));
  ATOLL_ASSIGN_OR_RETURN(const EnrolOutcome outcome, store_.enrol(request.invite_id, request.secret, newcomer));
  if (outcome.refusal) return EnrolResponse(*outcome.refusal);
  if (outcome.island != newcomer.id) {  // it has come before
    certificate = authority_.sign_request(request.request_pem, outcome.island, validity);
    if (!certificate.ok()) return EnrolResponse(certificate.error());
  }
  return EnrolResponse(EnrolGrant{std::move(*certificate), authority_.certificate_pem(), outcome.island, hub_});
}

}  // namespace atl
