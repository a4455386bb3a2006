#include "net/tls/authority.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>

#include "net/base/encoding.h"
#include "net/base/file.h"

namespace atl {
namespace {

constexpr const char* kAuthorityKeyFile = "authority-key.pem";
constexpr const char* kAuthorityCertificateFile = "authority.pem";
constexpr std::string_view kIslandPrefix = "isl-";
constexpr std::size_t kIslandRandomBytes = 8;

bool add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, OpenSslDeleter> extension(
      X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool add_name_entry(X509_NAME* name, int nid, const std::string& value) {
  return X509_NAME_add_entry_by_NID(name, nid, MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(value.data()),
                                    static_cast<int>(value.size()), -1, 0) == 1;
}

bool set_random_serial(X509* certificate) {
  const std::unique_ptr<BIGNUM, OpenSslDeleter> number(BN_new());
  return number && BN_rand(number.get(), 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool set_validity(X509* certificate, const Validity& validity) {
  const auto from = std::chrono::system_clock::to_time_t(validity.from);
  const auto until = std::chrono::system_clock::to_time_t(validity.until);
  return ASN1_TIME_set(X509_getm_notBefore(certificate), from) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), until) != nullptr;
}

// All that an authority's and a leaf's certificate have in common but the extensions and the signature.
UniqueCertificate certificate_of(EVP_PKEY* key, const std::string& run_id, const std::string& common_name,
                                 const Validity& validity) {
  UniqueCertificate certificate(X509_new());
  if (!certificate || X509_set_version(certificate.get(), X509_VERSION_3) != 1) return nullptr;
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  const bool done = set_random_serial(certificate.get()) && set_validity(certificate.get(), validity) &&
                    X509_set_pubkey(certificate.get(), key) == 1 &&
                    add_name_entry(subject, NID_organizationName, run_id) &&
                    add_name_entry(subject, NID_commonName, common_name);
  return done ? std::move(certificate) : nullptr;
}

}  // namespace

Validity Validity::starting(std::chrono::system_clock::time_point now, std::chrono::seconds duration) {
  return {now - std::chrono::minutes(10), now + duration};
}

CertificateAuthority::CertificateAuthority(std::string run_id, UniqueKey key, UniqueCertificate certificate)
    : run_id_(std::move(run_id)),
      key_(std::move(key)),
      certificate_(std::move(certificate)),
      certificate_pem_(to_pem(certificate_.get())) {}

Result<CertificateAuthority> CertificateAuthority::create(const std::string& run_id) {
  if (run_id.empty() || run_id.size() > 64) {
    return Error{ErrorCode::kInvalidArgument, "a run id has 1 to 64 characters"};
  }
  UniqueKey key = generate_key();
  const auto now = std::max<std::chrono::system_clock::time_point>(std::chrono::system_clock::now(), kSurelyPast);
  const Validity validity{kSurelyPast, now + kAuthorityLifetime};
  UniqueCertificate certificate = certificate_of(key.get(), run_id, "Atoll run authority", validity);
  X509* raw = certificate.get();
  const bool made = raw != nullptr && X509_set_issuer_name(raw, X509_get_subject_name(raw)) == 1 &&
                    add_extension(raw, raw, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                    add_extension(raw, raw, NID_key_usage, "critical,keyCertSign,cRLSign") &&
                    add_extension(raw, raw, NID_subject_key_identifier, "hash") &&
                    X509_sign(raw, key.get(), EVP_sha256()) > 0;
  if (!made) return openssl_error(ErrorCode::kInternal, "make the run's certificate authority");
  return CertificateAuthority(run_id, std::move(key), std::move(certificate));
}

Result<CertificateAuthority> CertificateAuthority::load(const std::filesystem::path& directory) {
  ATOLL_ASSIGN_OR_RETURN(const std::string key_pem, read_file(directory / kAuthorityKeyFile, kMaxPemBytes));
  ATOLL_ASSIGN_OR_RETURN(const std::string pem, read_file(directory / kAuthorityCertificateFile, kMaxPemBytes));
  ATOLL_ASSIGN_OR_RETURN(UniqueKey key, parse_key(key_pem));
  ATOLL_ASSIGN_OR_RETURN(UniqueCertificate certificate, parse_certificate(pem));
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    return Error{ErrorCode::kCorrupt, fmt::format("{} and {} in {} do not belong together; restore them from a backup",
                                                  kAuthorityKeyFile, kAuthorityCertificateFile, directory.string())};
  }
  std::string run_id = organisation_of(certificate.get());
  return CertificateAuthority(std::move(run_id), std::move(key), std::move(certificate));
}

Status CertificateAuthority::save(const std::filesystem::path& directory) const {
  ATOLL_RETURN_IF_ERROR(make_directories(directory, FileMode::kPrivate));
  ATOLL_RETURN_IF_ERROR(write_file_atomically(directory / kAuthorityKeyFile, to_pem(key_.get()), FileMode::kPrivate));
  return write_file_atomically(directory / kAuthorityCertificateFile, certificate_pem_, FileMode::kPublic);
}

Digest CertificateAuthority::pin() const { return public_key_digest(certificate_.get()); }

Status CertificateAuthority::check_time(std::chrono::system_clock::time_point now) const {
  const auto from = valid_from(certificate_.get()), until = valid_until(certificate_.get());
  if (from && until && *from <= now && now <= *until) return ok_status();
  return Error{
      ErrorCode::kCertificate,
      fmt::format("the run's authority is valid from {:%Y-%m-%d} to {:%Y-%m-%d}, and this machine's clock says "
                  "{:%Y-%m-%d %H:%M} UTC, so no island could connect: set the clock; if it is right, it was wrong "
                  "when the run was made, which has to be made anew",
                  fmt::gmtime(std::chrono::system_clock::to_time_t(from.value_or(now))),
                  fmt::gmtime(std::chrono::system_clock::to_time_t(until.value_or(now))),
                  fmt::gmtime(std::chrono::system_clock::to_time_t(now)))};
}

Validity CertificateAuthority::validity(std::chrono::system_clock::time_point now,
                                        std::chrono::seconds lifetime) const {
  Validity valid = Validity::starting(std::max<std::chrono::system_clock::time_point>(now, kSurelyPast), lifetime);
  valid.from = std::min(valid.from, valid_from(certificate_.get()).value_or(valid.from));
  return valid;
}

Result<std::string> CertificateAuthority::issue(EVP_PKEY* subject_key, const std::string& name,
                                                const Validity& validity) const {
  const UniqueCertificate certificate = certificate_of(subject_key, run_id_, name, validity);
  X509* raw = certificate.get();
  X509* issuer = certificate_.get();
  const bool made = raw != nullptr && X509_set_issuer_name(raw, X509_get_subject_name(issuer)) == 1 &&
                    add_extension(raw, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
                    add_extension(raw, issuer, NID_key_usage, "critical,digitalSignature") &&
                    add_extension(raw, issuer, NID_ext_key_usage, "serverAuth,clientAuth") &&
                    add_extension(raw, issuer, NID_subject_key_identifier, "hash") &&
                    add_extension(raw, issuer, NID_authority_key_identifier, "keyid:always") &&
                    add_extension(raw, issuer, NID_subject_alt_name, "DNS:" + name) &&
                    X509_sign(raw, key_.get(), EVP_sha256()) > 0;
  if (!made) return openssl_error(ErrorCode::kInternal, "sign a certificate for " + name);
  return to_pem(raw);
}

Result<std::string> CertificateAuthority::sign_request(const std::string& request_pem, const IslandId& name,
                                                       const Validity& validity) const {
  if (!is_enrolled_name(name.value)) {
    return Error{ErrorCode::kInvalidArgument, "not an island's name: '" + name.value + "'"};
  }
  const auto request = parse_request(request_pem);
  if (!request.ok()) return Error{ErrorCode::kInvalidArgument, request.error().message};
  EVP_PKEY* key = X509_REQ_get0_pubkey(request->get());
  if (key == nullptr || !is_p256(key)) {
    ERR_clear_error();
    return Error{ErrorCode::kInvalidArgument, "the signing request's key is not an EC P-256 key"};
  }
  if (X509_REQ_verify(request->get(), key) != 1) {
    ERR_clear_error();
    return Error{ErrorCode::kInvalidArgument, "the signing request is not signed with its own key"};
  }
  return issue(key, name.value, validity);
}

Result<std::string> CertificateAuthority::renew(const std::string& certificate_pem, const Validity& validity) const {
  ATOLL_ASSIGN_OR_RETURN(const UniqueCertificate certificate, parse_certificate(certificate_pem));
  EVP_PKEY* key = X509_get0_pubkey(certificate.get());
  const bool ours = X509_verify(certificate.get(), X509_get0_pubkey(certificate_.get())) == 1;
  ERR_clear_error();
  if (key == nullptr || !ours) {
    return Error{ErrorCode::kCertificate, "the certificate to renew is not from this run's authority"};
  }
  ATOLL_ASSIGN_OR_RETURN(const std::string name, certified_name(certificate.get()));
  if (!is_enrolled_name(name)) return Error{ErrorCode::kCertificate, "not an island's name: '" + name + "'"};
  return issue(key, name,
               {std::min(validity.from, valid_from(certificate.get()).value_or(validity.from)),
                std::max(validity.until, valid_until(certificate.get()).value_or(validity.until))});
}

Result<Identity> CertificateAuthority::make_hub_identity(const Validity& validity) const {
  const UniqueKey key = generate_key();
  Identity hub;
  hub.name = IslandId{kHubName};
  hub.run = run_id_;
  hub.key_pem = to_pem(key.get());
  ATOLL_ASSIGN_OR_RETURN(hub.certificate_pem, issue(key.get(), kHubName, validity));
  hub.authority_pem = certificate_pem_;
  return hub;
}

IslandId random_island_id() {
  std::array<std::byte, kIslandRandomBytes> random{};
  if (RAND_bytes(reinterpret_cast<unsigned char*>(random.data()), static_cast<int>(random.size())) != 1) {
    detail::die_on_wrong_access("the machine has randomness", "RAND_bytes failed");
  }
  return IslandId{std::string(kIslandPrefix) + hex_encode(random)};
}

bool is_enrolled_name(const std::string& text) {
  return text.size() == kIslandPrefix.size() + 2 * kIslandRandomBytes && text.starts_with(kIslandPrefix) &&
         text.find_first_not_of("0123456789abcdef", kIslandPrefix.size()) == std::string::npos;
}

}  // namespace atl
