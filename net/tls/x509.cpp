#include "net/tls/x509.h"

#include <fmt/format.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace atl {
namespace {

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "atoll: broken invariant: OpenSSL cannot %s\n", what);
  std::abort();
}

UniqueBio memory_bio(std::string_view text) {
  UniqueBio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  if (!bio) die("allocate memory");
  return bio;
}

template <class Write>
std::string written_pem(Write write) {
  const UniqueBio bio(BIO_new(BIO_s_mem()));
  if (!bio || write(bio.get()) != 1) die("encode PEM");
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

// A key with a passphrase is not ours: never ask on the terminal.
int no_passphrase(char*, int, int, void*) { return -1; }

Status check_pem_size(std::string_view pem, std::string_view what) {
  if (pem.size() <= kMaxPemBytes) return ok_status();
  return Error{ErrorCode::kCorrupt,
               fmt::format("this {} is {} bytes; at most {} are read", what, pem.size(), kMaxPemBytes)};
}

std::string entry_of(const X509_NAME* name, int nid) {
  const int index = X509_NAME_get_index_by_NID(name, nid, -1);
  if (index < 0) return {};
  const ASN1_STRING* data = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, index));
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(data)),
          static_cast<std::size_t>(ASN1_STRING_length(data))};
}

}  // namespace

UniqueKey generate_key() {
  UniqueKey key(EVP_EC_gen("P-256"));
  if (!key) die("generate a key");
  return key;
}

Result<UniqueKey> parse_key(std::string_view pem) {
  ATOLL_RETURN_IF_ERROR(check_pem_size(pem, "private key"));
  UniqueKey key(PEM_read_bio_PrivateKey(memory_bio(pem).get(), nullptr, no_passphrase, nullptr));
  if (!key) return openssl_error(ErrorCode::kCorrupt, "read the private key");
  return key;
}

Result<UniqueCertificate> parse_certificate(std::string_view pem) {
  ATOLL_RETURN_IF_ERROR(check_pem_size(pem, "certificate"));
  UniqueCertificate certificate(PEM_read_bio_X509(memory_bio(pem).get(), nullptr, no_passphrase, nullptr));
  if (!certificate) return openssl_error(ErrorCode::kCorrupt, "read the certificate");
  return certificate;
}

Result<UniqueRequest> parse_request(std::string_view pem) {
  ATOLL_RETURN_IF_ERROR(check_pem_size(pem, "signing request"));
  UniqueRequest request(PEM_read_bio_X509_REQ(memory_bio(pem).get(), nullptr, no_passphrase, nullptr));
  if (!request) return openssl_error(ErrorCode::kCorrupt, "read the signing request");
  return request;
}

std::string to_pem(EVP_PKEY* private_key) {
  return written_pem(
      [&](BIO* bio) { return PEM_write_bio_PrivateKey(bio, private_key, nullptr, nullptr, 0, nullptr, nullptr); });
}

std::string to_pem(X509* certificate) {
  return written_pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

std::string to_pem(X509_REQ* request) {
  return written_pem([&](BIO* bio) { return PEM_write_bio_X509_REQ(bio, request); });
}

bool is_p256(EVP_PKEY* key) {
  std::array<char, 32> group{};
  std::size_t length = 0;
  if (EVP_PKEY_get_base_id(key) != EVP_PKEY_EC) return false;
  if (EVP_PKEY_get_group_name(key, group.data(), group.size(), &length) != 1) return false;
  return std::string_view(group.data(), length) == "prime256v1";
}

Digest public_key_digest(X509* certificate) {
  unsigned char* der = nullptr;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
  if (size <= 0) die("encode a public key");
  const Digest digest = sha256(std::as_bytes(std::span(der, static_cast<std::size_t>(size))));
  OPENSSL_free(der);
  return digest;
}

namespace {

std::optional<std::chrono::system_clock::time_point> time_of(const ASN1_TIME* time) {
  std::tm utc{};
  if (ASN1_TIME_to_tm(time, &utc) != 1) return std::nullopt;
  return std::chrono::system_clock::from_time_t(::timegm(&utc));
}

}  // namespace

std::optional<std::chrono::system_clock::time_point> valid_from(const X509* certificate) {
  return time_of(X509_get0_notBefore(certificate));
}

std::optional<std::chrono::system_clock::time_point> valid_until(const X509* certificate) {
  return time_of(X509_get0_notAfter(certificate));
}

std::string organisation_of(X509* certificate) {
  return entry_of(X509_get_subject_name(certificate), NID_organizationName);
}

Result<std::string> certified_name(X509* certificate) {
  const std::string common_name = entry_of(X509_get_subject_name(certificate), NID_commonName);
  auto* names = static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  bool same = false;
  if (names != nullptr && sk_GENERAL_NAME_num(names) == 1) {
    int type = 0;
    const auto* value =
        static_cast<const ASN1_STRING*>(GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, 0), &type));
    same =
        type == GEN_DNS && common_name == std::string_view(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                                                           static_cast<std::size_t>(ASN1_STRING_length(value)));
  }
  GENERAL_NAMES_free(names);
  if (common_name.empty() || !same) {
    return Error{ErrorCode::kCertificate, "the certificate does not carry exactly one name: it was not made by Atoll"};
  }
  return common_name;
}

Error openssl_error(ErrorCode code, std::string_view action) {
  std::string reasons;
  while (const unsigned long number = ERR_get_error()) {
    const char* reason = ERR_reason_error_string(number);
    if (!reasons.empty()) reasons += "; ";
    reasons += reason != nullptr ? std::string(reason) : fmt::format("error {:#x}", number);
  }
  return Error{code, fmt::format("cannot {}: {}", action, reasons.empty() ? "OpenSSL gives no reason" : reasons)};
}

}  // namespace atl
