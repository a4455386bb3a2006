#include "net/tls/identity.h"

#include <fmt/format.h>
#include <openssl/err.h>

#include <algorithm>

#include "net/base/file.h"
#include "net/tls/x509.h"

namespace atl {
namespace {

constexpr const char* kKeyFile = "key.pem";
constexpr const char* kCertificateFile = "certificate.pem";
constexpr const char* kAuthorityFile = "authority.pem";

Result<std::string> read_identity_file(const std::filesystem::path& path) {
  Result<std::string> text = read_file(path, kMaxPemBytes);
  if (text.ok() || text.error().code != ErrorCode::kNotFound) return text;
  return Error{ErrorCode::kNotJoined,
               fmt::format("there is no {}: this machine has not joined a run; join one with `atoll join --invite-stdin`",
                           path.string())};
}

// Why they are not one identity; empty when they are.
std::string_view mismatch(EVP_PKEY* key, X509* certificate, X509* authority) {
  const bool own_key = X509_check_private_key(certificate, key) == 1;
  const bool signed_by_authority = X509_verify(certificate, X509_get0_pubkey(authority)) == 1;
  ERR_clear_error();
  if (!own_key) return "key and certificate do not belong together";
  return signed_by_authority ? std::string_view() : "the certificate is not from the run's authority";
}

Error corrupt(const std::filesystem::path& directory, std::string_view why) {
  return Error{ErrorCode::kCorrupt,
               fmt::format("the identity in {} is damaged: {}; leave the run and join again with a new invite",
                           directory.string(), why)};
}

}  // namespace

Result<Identity> load_identity(const std::filesystem::path& directory) {
  Identity identity;
  ATOLL_ASSIGN_OR_RETURN(identity.key_pem, read_identity_file(directory / kKeyFile));
  ATOLL_ASSIGN_OR_RETURN(identity.certificate_pem, read_identity_file(directory / kCertificateFile));
  ATOLL_ASSIGN_OR_RETURN(identity.authority_pem, read_identity_file(directory / kAuthorityFile));

  const auto key = parse_key(identity.key_pem);
  if (!key.ok()) return corrupt(directory, key.error().message);
  const auto certificate = parse_certificate(identity.certificate_pem);
  if (!certificate.ok()) return corrupt(directory, certificate.error().message);
  const auto authority = parse_certificate(identity.authority_pem);
  if (!authority.ok()) return corrupt(directory, authority.error().message);
  const auto name = certified_name(certificate->get());
  if (!name.ok()) return corrupt(directory, name.error().message);

  const std::string_view why = mismatch(key->get(), certificate->get(), authority->get());
  if (!why.empty()) return corrupt(directory, why);
  identity.name = IslandId{*name};
  identity.run = organisation_of(authority->get());
  return identity;
}

Result<Identity> with_certificate(const Identity& identity, const std::string& certificate_pem) {
  ATOLL_ASSIGN_OR_RETURN(const UniqueKey key, parse_key(identity.key_pem));
  ATOLL_ASSIGN_OR_RETURN(const UniqueCertificate old, parse_certificate(identity.certificate_pem));
  ATOLL_ASSIGN_OR_RETURN(const UniqueCertificate renewed, parse_certificate(certificate_pem));
  ATOLL_ASSIGN_OR_RETURN(const UniqueCertificate authority, parse_certificate(identity.authority_pem));
  ATOLL_ASSIGN_OR_RETURN(const std::string name, certified_name(renewed.get()));
  std::string_view why = mismatch(key.get(), renewed.get(), authority.get());
  if (why.empty() && name != identity.name.value) why = "it carries another name";
  if (why.empty() && valid_until(renewed.get()) <= valid_until(old.get()))
    why = "it lasts no longer than the present one";
  if (!why.empty()) return Error{ErrorCode::kCertificate, fmt::format("the renewed certificate is no use: {}", why)};
  Identity result = identity;
  result.certificate_pem = to_pem(renewed.get());
  return result;
}

bool is_due_for_renewal(const Identity& identity, std::chrono::system_clock::time_point now,
                        std::chrono::seconds lifetime) {
  const auto certificate = parse_certificate(identity.certificate_pem);
  if (!certificate.ok()) return false;
  const auto from = valid_from(certificate->get()), until = valid_until(certificate->get());
  if (!from || !until || now < *from) return true;
  const std::chrono::system_clock::duration life =
      std::min<std::chrono::system_clock::duration>(*until - *from, lifetime);
  return now > *until - 2 * life / 3;
}

bool is_not_yet_valid(const Identity& identity, std::chrono::system_clock::time_point now) {
  const auto certificate = parse_certificate(identity.certificate_pem);
  return certificate.ok() && now < valid_from(certificate->get()).value_or(now);
}

Status save_identity(const std::filesystem::path& directory, const Identity& identity) {
  ATOLL_RETURN_IF_ERROR(make_directories(directory, FileMode::kPrivate));
  ATOLL_RETURN_IF_ERROR(write_file_atomically(directory / kKeyFile, identity.key_pem, FileMode::kPrivate));
  ATOLL_RETURN_IF_ERROR(write_file_atomically(directory / kAuthorityFile, identity.authority_pem, FileMode::kPublic));
  return write_file_atomically(directory / kCertificateFile, identity.certificate_pem, FileMode::kPublic);
}

}  // namespace atl
