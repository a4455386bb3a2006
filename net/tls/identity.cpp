#include "net/tls/identity.h"

#include <fmt/format.h>
#include <openssl/err.h>

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
               fmt::format("there is no {}: this machine has not joined a run; join one with `atoll join INVITE`",
                           path.string())};
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

  const bool own_key = X509_check_private_key(certificate->get(), key->get()) == 1;
  const bool signed_by_authority = X509_verify(certificate->get(), X509_get0_pubkey(authority->get())) == 1;
  ERR_clear_error();
  if (!own_key) return corrupt(directory, "key and certificate do not belong together");
  if (!signed_by_authority) return corrupt(directory, "the certificate is not from the run's authority");
  identity.name = IslandId{*name};
  identity.run = organisation_of(authority->get());
  return identity;
}

Status save_identity(const std::filesystem::path& directory, const Identity& identity) {
  ATOLL_RETURN_IF_ERROR(make_directories(directory, FileMode::kPrivate));
  ATOLL_RETURN_IF_ERROR(write_file_atomically(directory / kKeyFile, identity.key_pem, FileMode::kPrivate));
  ATOLL_RETURN_IF_ERROR(write_file_atomically(directory / kAuthorityFile, identity.authority_pem, FileMode::kPublic));
  return write_file_atomically(directory / kCertificateFile, identity.certificate_pem, FileMode::kPublic);
}

}  // namespace atl
