// All TLS set-up lives here and in context.cpp: TLS 1.3 only, no session tickets, no 0-RTT, mutual authentication
// within the run's authority. The one exception is the enrolment protocol of the hub, which asks for no client
// certificate. Thread-safe after construction.
#pragma once

#include <openssl/ssl.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "net/base/result.h"
#include "net/base/sha256.h"
#include "net/tls/identity.h"

namespace atl {

// Application protocols (ALPN).
inline constexpr std::string_view kAlpnEnrol = "atoll-enrol/1";  // hub: enrolment only, no client certificate
inline constexpr std::string_view kAlpnHttp = "http/1.1";        // hub: WebSocket, data; island: outer state
inline constexpr std::string_view kAlpnRing = "atoll-ring/1";    // island: ring edges
// The same, whose receivers say what has come (net/wire/ring_frame.h). Whoever dials with kAlpnRing offers this first.
inline constexpr std::string_view kAlpnRingReceipts = "atoll-ring/2";

struct SslContextDeleter {
  void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
};
using UniqueSslContext = std::unique_ptr<SSL_CTX, SslContextDeleter>;

class TlsContext {
 public:
  // Accepts kAlpnHttp from certified islands and kAlpnEnrol from anybody; refuses every other handshake.
  static Result<TlsContext> hub_server(const Identity& hub);
  // Accepts kAlpnRingReceipts, kAlpnRing and kAlpnHttp from certified members of the run.
  static Result<TlsContext> island_server(const Identity& island);
  // Dials hub or islands with `alpn`. The peer's name is checked per connection (verified_peer_name).
  static Result<TlsContext> client(const Identity& identity, std::string_view alpn);
  // Dials the hub's enrolment: no certificate of ours; accepts only an authority whose public key has this SHA-256 pin.
  // kInviteOtherRun when the one that is shown names another run than `run_id`, kPinMismatch when it is not the pinned
  // one for another reason.
  static Result<TlsContext> enrol_client(const Digest& authority_pin, const std::string& run_id);

  SSL_CTX* native() const { return context_.get(); }

 private:
  explicit TlsContext(UniqueSslContext context) : context_(std::move(context)) {}
  UniqueSslContext context_;
};

// The same as TlsContext::client, of a context that another library made (libcurl), before its first connection: what
// was set before, and whom it trusted, no longer counts. The peer's name is that library's to check.
Status set_up_client(SSL_CTX* context, const Identity& identity, std::string_view alpn);

struct PeerCertificate {
  IslandId name;
  Digest key_sha256;  // of its public key (SubjectPublicKeyInfo), which stays when the certificate is renewed
};
// After the handshake: the peer's verified certificate. kCertificate when there is none or it was not verified.
Result<PeerCertificate> verified_peer(SSL* ssl);
// The peer's certificate as PEM, for verify_hub_signature.
Result<std::string> peer_certificate_pem(SSL* ssl);
// What ALPN agreed on; empty when nothing.
std::string_view negotiated_alpn(SSL* ssl);
// The reason of the last failed handshake or operation, in words: OpenSSL's queue, alerts and verification results.
// kPinMismatch and kCertificate are told apart.
Error tls_error(SSL* ssl, int operation_result, std::string_view context);

}  // namespace atl
