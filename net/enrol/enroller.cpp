#include "net/enrol/enroller.h"

#include <fmt/format.h>
#include <openssl/rand.h>

#include "net/base/encoding.h"

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

}  // namespace

Result<Invite> make_invite(const CertificateAuthority& authority, InviteStore& store, const std::string& run_name,
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

Enroller::Enroller(const CertificateAuthority& authority, InviteStore& store, std::vector<Address> hub, WallClock clock,
                   std::chrono::seconds certificate_lifetime)
    : authority_(authority),
      store_(store),
      hub_(std::move(hub)),
      clock_(std::move(clock)),
      certificate_lifetime_(certificate_lifetime) {}

EnrolResponse Enroller::handle(const EnrolRequest& request) {
  auto granted = grant(request);
  if (!granted.ok()) return granted.error();
  return std::move(granted).value();
}

Result<EnrolGrant> Enroller::grant(const EnrolRequest& request) {
  if (request.run_id != authority_.run_id()) {
    return Error{
        ErrorCode::kInviteOtherRun,
        fmt::format("this invite is for another run; the hub at this address leads run {}", authority_.run_id())};
  }
  const auto now = clock_();
  EnrolGrant grant;
  grant.island = random_island_id();
  grant.authority_pem = authority_.certificate_pem();
  grant.hub = hub_;
  // Signed before the invite is burnt, so that a request that cannot be signed costs no use; shown only after.
  ATOLL_ASSIGN_OR_RETURN(
      grant.certificate_pem,
      authority_.sign_request(request.request_pem, grant.island, Validity::starting(now, certificate_lifetime_)));
  ATOLL_RETURN_IF_ERROR(store_.burn(request.invite_id, request.secret, std::chrono::floor<std::chrono::seconds>(now)));
  return grant;
}

}  // namespace atl
