// tls_error: OpenSSL's ways to say what went wrong, in words for a person.
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/sslerr.h>
#include <openssl/x509_vfy.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "net/tls/context.h"
#include "net/tls/x509.h"

namespace atl {
namespace {

// What verification here found wrong with the peer's certificate.
Error verification_error(long result) {
  switch (result) {
    case kVerifyOtherRun:
      return {ErrorCode::kInviteOtherRun,
              "the invite is for another run than the one that the hub at this address leads: ask the person who sent "
              "it for an invite to this run, or for the other hub's address"};
    case kVerifyPin:
      return {ErrorCode::kPinMismatch,
              "this hub's certificate authority is not the one in the invite: something else answers at this address; "
              "check the address with the person who sent it"};
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return {
          ErrorCode::kCertificate,
          "the peer's certificate is not valid yet: the clock of this machine or of the peer is wrong; set it and try "
          "again"};
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return {ErrorCode::kCertificate,
              "the peer's certificate has expired: if this machine's clock is right, the peer has to enrol again"};
    case X509_V_ERR_HOSTNAME_MISMATCH:
      return {ErrorCode::kCertificate, "the peer's certificate is from the run's authority, but it is not the hub's"};
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return {ErrorCode::kCertificate,
              "the peer's certificate is not from this run's authority: it belongs to another run"};
    default:
      return {ErrorCode::kCertificate,
              fmt::format("the peer's certificate was refused: {}", X509_verify_cert_error_string(result))};
  }
}

// What the other end, or OpenSSL here, gave as its reason.
std::optional<Error> known_reason(int reason) {
  switch (reason) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return Error{ErrorCode::kCertificate, "the peer asks for a certificate of the run, and this end showed none"};
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return Error{ErrorCode::kCertificate, "the peer showed no certificate"};
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
      return Error{
          ErrorCode::kCertificate,
          "the peer does not accept our certificate: it is damaged, or not valid yet by the peer's clock; check "
          "the clocks of both machines"};
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
      return Error{ErrorCode::kCertificate, "the peer does not accept our certificate: it belongs to another run"};
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
      return Error{
          ErrorCode::kCertificate,
          "the peer says that our certificate has expired or is not valid yet: check the clocks of both machines, "
          "or join again with a new invite"};
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
      return Error{ErrorCode::kCertificate, "the peer does not accept our certificate"};
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
      return Error{ErrorCode::kCertificate, "the peer refused the TLS handshake"};
    case SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL:
    case SSL_R_NO_APPLICATION_PROTOCOL:
      return Error{
          ErrorCode::kProtocol,
          "the two ends have no protocol in common: this is not the service that was expected at this address"};
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
    case SSL_R_UNSUPPORTED_PROTOCOL:
      return Error{ErrorCode::kProtocol, "one end does not speak TLS 1.3, the only version that Atoll uses"};
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_BAD_PROTOCOL_VERSION_NUMBER:
      return Error{ErrorCode::kProtocol, "the peer does not speak TLS: something other than Atoll is at this address"};
    case SSL_R_UNEXPECTED_EOF_WHILE_READING:
      return Error{ErrorCode::kPeerLost, "the peer closed the connection without a word"};
    case SSL_R_SSL_HANDSHAKE_FAILURE: return Error{ErrorCode::kCertificate, "the TLS handshake failed"};
    default: return std::nullopt;
  }
}

// Empties the queue: a known reason wins, otherwise all of them in OpenSSL's words.
std::optional<Error> queue_error() {
  std::optional<Error> known;
  std::string words;
  while (const unsigned long number = ERR_get_error()) {
    if (!known && ERR_GET_LIB(number) == ERR_LIB_SSL) known = known_reason(ERR_GET_REASON(number));
    const char* reason = ERR_reason_error_string(number);
    words += fmt::format("{}{}", words.empty() ? "" : "; ", reason != nullptr ? reason : "an unnamed TLS error");
  }
  if (known || words.empty()) return known;
  return Error{ErrorCode::kProtocol, "TLS: " + words};
}

}  // namespace

Error tls_error(SSL* ssl, int operation_result, std::string_view context) {
  const int system_error = errno;
  const int kind = ssl != nullptr ? SSL_get_error(ssl, operation_result) : SSL_ERROR_SSL;
  const long verification = ssl != nullptr ? SSL_get_verify_result(ssl) : X509_V_OK;
  const std::optional<Error> queued = queue_error();
  if (kind == SSL_ERROR_SSL && verification != X509_V_OK) return verification_error(verification).with_context(context);
  if (kind == SSL_ERROR_ZERO_RETURN) {
    return Error{ErrorCode::kPeerLost, "the peer closed the connection"}.with_context(context);
  }
  if (queued) return queued->with_context(context);
  if (system_error != 0 && kind == SSL_ERROR_SYSCALL) {
    return Error{ErrorCode::kPeerLost, std::strerror(system_error)}.with_context(context);
  }
  return Error{ErrorCode::kPeerLost, "the connection broke"}.with_context(context);
}

}  // namespace atl
