#include "net/tls/signature.h"

#include <openssl/err.h>

#include "net/tls/x509.h"

namespace atl {

namespace {

Result<KeyAndRequest> sign_request(EVP_PKEY* key) {
  const UniqueRequest request(X509_REQ_new());
  const bool made = request && X509_REQ_set_version(request.get(), X509_REQ_VERSION_1) == 1 &&
                    X509_REQ_set_pubkey(request.get(), key) == 1 && X509_REQ_sign(request.get(), key, EVP_sha256()) > 0;
  if (!made) return openssl_error(ErrorCode::kCorrupt, "sign a request with this key");
  return KeyAndRequest{to_pem(key), to_pem(request.get())};
}

}  // namespace

KeyAndRequest make_signing_request() {
  const UniqueKey key = generate_key();
  Result<KeyAndRequest> made = sign_request(key.get());
  if (!made.ok()) detail::die_on_wrong_access("a fresh key signs its request", made.error().message);
  return std::move(*made);
}

Result<KeyAndRequest> signing_request_of(const std::string& key_pem) {
  ATOLL_ASSIGN_OR_RETURN(const UniqueKey key, parse_key(key_pem));
  if (!is_p256(key.get())) return Error{ErrorCode::kCorrupt, "this is not an EC P-256 key"};
  return sign_request(key.get());
}

Result<Bytes> sign_message(const Identity& signer, ByteView message) {
  ATOLL_ASSIGN_OR_RETURN(const UniqueKey key, parse_key(signer.key_pem));
  const auto* data = reinterpret_cast<const unsigned char*>(message.data());
  const std::unique_ptr<EVP_MD_CTX, OpenSslDeleter> context(EVP_MD_CTX_new());
  std::size_t size = 0;
  if (!context || EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get()) != 1 ||
      EVP_DigestSign(context.get(), nullptr, &size, data, message.size()) != 1) {
    return openssl_error(ErrorCode::kInternal, "sign with this identity's key");
  }
  Bytes signature(size);
  if (EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, data, message.size()) !=
      1) {
    return openssl_error(ErrorCode::kInternal, "sign with this identity's key");
  }
  signature.resize(size);
  return signature;
}

Status verify_hub_signature(const Identity& self, const std::string& hub_certificate_pem, ByteView message,
                            ByteView signature) {
  ATOLL_ASSIGN_OR_RETURN(const UniqueCertificate authority, parse_certificate(self.authority_pem));
  ATOLL_ASSIGN_OR_RETURN(const UniqueCertificate hub, parse_certificate(hub_certificate_pem));
  ATOLL_ASSIGN_OR_RETURN(const std::string name, certified_name(hub.get()));
  if (name != kHubName) return Error{ErrorCode::kCertificate, "signed by '" + name + "', which is not the hub"};
  if (X509_verify(hub.get(), X509_get0_pubkey(authority.get())) != 1) {
    ERR_clear_error();
    return Error{ErrorCode::kCertificate, "the signer's certificate is not from this run's authority"};
  }
  const std::unique_ptr<EVP_MD_CTX, OpenSslDeleter> context(EVP_MD_CTX_new());
  const bool good =
      context &&
      EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, X509_get0_pubkey(hub.get())) == 1 &&
      EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()), signature.size(),
                       reinterpret_cast<const unsigned char*>(message.data()), message.size()) == 1;
  ERR_clear_error();
  if (!good) return Error{ErrorCode::kCorrupt, "the hub's signature does not fit the message: one of them was changed"};
  return ok_status();
}

}  // namespace atl
