// Owners of OpenSSL's key and certificate objects and their PEM forms. For net/tls and its tests; other rooms speak in
// Identity and TlsContext. No state; any thread.
#pragma once

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/base/result.h"
#include "net/base/sha256.h"

namespace atl {

struct OpenSslDeleter {
  void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const noexcept { X509_free(certificate); }
  void operator()(X509_REQ* request) const noexcept { X509_REQ_free(request); }
  void operator()(X509_EXTENSION* extension) const noexcept { X509_EXTENSION_free(extension); }
  void operator()(BIO* bio) const noexcept { BIO_free_all(bio); }
  void operator()(BIGNUM* number) const noexcept { BN_free(number); }
  void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
};
using UniqueKey = std::unique_ptr<EVP_PKEY, OpenSslDeleter>;
using UniqueCertificate = std::unique_ptr<X509, OpenSslDeleter>;
using UniqueRequest = std::unique_ptr<X509_REQ, OpenSslDeleter>;
using UniqueBio = std::unique_ptr<BIO, OpenSslDeleter>;

// More than any key, request or certificate of ours needs.
inline constexpr std::size_t kMaxPemBytes = 8 * 1024;

UniqueKey generate_key();  // EC P-256; aborts where the machine has no randomness
Result<UniqueKey> parse_key(std::string_view pem);
Result<UniqueCertificate> parse_certificate(std::string_view pem);
Result<UniqueRequest> parse_request(std::string_view pem);
std::string to_pem(EVP_PKEY* private_key);
std::string to_pem(X509* certificate);
std::string to_pem(X509_REQ* request);

bool is_p256(EVP_PKEY* key);
// SHA-256 of the DER SubjectPublicKeyInfo: what a pin is.
Digest public_key_digest(X509* certificate);
// Verdicts of the enrolment's own verification, carried by OpenSSL's result of it: not the pinned authority, and one
// that names another run.
inline constexpr int kVerifyPin = X509_V_ERR_APPLICATION_VERIFICATION;
inline constexpr int kVerifyOtherRun = X509_V_ERR_CERT_REJECTED;

// Empty: it says none that can be read.
std::optional<std::chrono::system_clock::time_point> valid_from(const X509* certificate);
std::optional<std::chrono::system_clock::time_point> valid_until(const X509* certificate);

std::string organisation_of(X509* certificate);  // of its subject; empty when there is none
// The common name, when it is also the only subject alternative name; kCertificate otherwise.
Result<std::string> certified_name(X509* certificate);

// OpenSSL's error queue (emptied) as one error: "cannot <action>: <reasons>".
Error openssl_error(ErrorCode code, std::string_view action);

}  // namespace atl
