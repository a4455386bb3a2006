#include "net/tls/context.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "net/tls/aes_gcm_provider.h"
#include "net/tls/either_clock.h"
#include "net/tls/x509.h"

namespace atl {
namespace {

constexpr long kVerifyDepth = 1;
// In the client's order of preference, which the server follows. AES-128 first: the ring encrypts every byte twice.
constexpr char kCipherSuites[] = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
constexpr int kMutual = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;

// ---- ALPN: what a client offers, what a server takes
// ----------------------------------------------------------------------

using ProtocolList = std::vector<std::string_view>;

// RFC 7301: a byte of length, then the name, repeated. Empty when malformed.
ProtocolList parse_protocols(std::string_view wire) {
  ProtocolList protocols;
  while (!wire.empty()) {
    const auto length = static_cast<unsigned char>(wire.front());
    if (length == 0 || length >= wire.size()) return {};
    protocols.push_back(wire.substr(1, length));
    wire.remove_prefix(1u + length);
  }
  return protocols;
}

ProtocolList offered_protocols(SSL* ssl) {
  const unsigned char* data = nullptr;
  std::size_t size = 0;
  if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &data, &size) != 1) return {};
  if (size < 2 || size - 2 != (static_cast<std::size_t>(data[0]) << 8 | data[1])) return {};
  return parse_protocols({reinterpret_cast<const char*>(data) + 2, size - 2});
}

bool is_enrolment_alone(const ProtocolList& offer) { return offer.size() == 1 && offer.front() == kAlpnEnrol; }

// The protocol that the hub takes from this offer. Enrolment only when nothing else is offered, so that a connection
// without a certificate request can never become anything but an enrolment.
std::string_view choose_for_hub(const ProtocolList& offer) {
  if (is_enrolment_alone(offer)) return kAlpnEnrol;
  return std::ranges::find(offer, kAlpnHttp) != offer.end() ? kAlpnHttp : std::string_view();
}

std::string_view choose_for_island(const ProtocolList& offer) {
  for (const std::string_view known : {kAlpnRingReceipts, kAlpnRing, kAlpnHttp}) {
    if (std::ranges::find(offer, known) != offer.end()) return known;
  }
  return {};
}

using ChooseProtocol = std::string_view (*)(const ProtocolList&);

template <ChooseProtocol Choose>
int select_protocol(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in,
                    unsigned int in_size, void*) {
  const std::string_view chosen = Choose(parse_protocols({reinterpret_cast<const char*>(in), in_size}));
  if (chosen.empty()) return SSL_TLSEXT_ERR_ALERT_FATAL;
  *out = reinterpret_cast<const unsigned char*>(chosen.data());
  *out_size = static_cast<unsigned char>(chosen.size());
  return SSL_TLSEXT_ERR_OK;
}

// OpenSSL does not ask select_protocol when a client offers no ALPN at all: refuse that here. And before anything else
// is decided, ask for a certificate or, for an enrolment alone, not.
template <ChooseProtocol Choose>
int check_client_hello(SSL* ssl, int* alert, void*) {
  const ProtocolList offer = offered_protocols(ssl);
  const std::string_view chosen = Choose(offer);
  if (chosen.empty()) {
    *alert = SSL_AD_NO_APPLICATION_PROTOCOL;
    ERR_raise(ERR_LIB_SSL, SSL_R_NO_APPLICATION_PROTOCOL);
    return SSL_CLIENT_HELLO_ERROR;
  }
  SSL_set_verify(ssl, chosen == kAlpnEnrol ? SSL_VERIFY_NONE : kMutual, in_time_by_either_clock);
  return SSL_CLIENT_HELLO_SUCCESS;
}

template <ChooseProtocol Choose>
void serve_protocols(SSL_CTX* context) {
  SSL_CTX_set_client_hello_cb(context, check_client_hello<Choose>, nullptr);
  SSL_CTX_set_alpn_select_cb(context, select_protocol<Choose>, nullptr);
}

Status offer_protocol(SSL_CTX* context, std::string_view alpn) {
  std::string wire;
  const auto offer = [&](std::string_view protocol) {
    wire += static_cast<char>(protocol.size());
    wire += protocol;
  };
  if (alpn == kAlpnRing) offer(kAlpnRingReceipts);
  offer(alpn);
  if (SSL_CTX_set_alpn_protos(context, reinterpret_cast<const unsigned char*>(wire.data()),
                              static_cast<unsigned int>(wire.size())) != 0) {
    return openssl_error(ErrorCode::kInternal, "offer a protocol");
  }
  return ok_status();
}

// ---- what every context has in common
// -------------------------------------------------------------------------------------

Status set_up(SSL_CTX* context) {
  if (SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) != 1 || SSL_CTX_set_num_tickets(context, 0) != 1 ||
      SSL_CTX_set_max_early_data(context, 0) != 1 || SSL_CTX_set_recv_max_early_data(context, 0) != 1 ||
      SSL_CTX_set_ciphersuites(context, kCipherSuites) != 1) {
    return openssl_error(ErrorCode::kInternal, "set TLS up");
  }
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify_depth(context, kVerifyDepth);
  SSL_CTX_set_verify(context, kMutual, in_time_by_either_clock);
  return ok_status();
}

Result<UniqueSslContext> make_context(const SSL_METHOD* method) {
  UniqueSslContext context(SSL_CTX_new_ex(nullptr, fast_cipher_query().c_str(), method));
  if (!context) return openssl_error(ErrorCode::kInternal, "set TLS up");
  ATOLL_RETURN_IF_ERROR(set_up(context.get()));
  // A write that could not finish may be repeated from another buffer with the same bytes.
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return context;
}

using SharedCertificate = std::shared_ptr<RenewedCertificate>;

void free_shared(void*, void* shared, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<SharedCertificate*>(shared);
}

int shared_index() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, free_shared);
  return index;
}

// In each handshake, before this end shows a certificate.
int show_newest_certificate(SSL* ssl, void* renewed) {
  const std::string pem = static_cast<const RenewedCertificate*>(renewed)->pem();
  if (pem.empty()) return 1;
  const auto certificate = parse_certificate(pem);
  return certificate.ok() && SSL_use_certificate(ssl, certificate->get()) == 1 ? 1 : 0;
}

// The context keeps the shared certificate alive.
Status follow_renewals(SSL_CTX* context, const Identity& identity) {
  auto shared = std::make_unique<SharedCertificate>(identity.renewed);
  if (SSL_CTX_set_ex_data(context, shared_index(), shared.get()) != 1) {
    return openssl_error(ErrorCode::kInternal, "keep the certificate's successor");
  }
  SSL_CTX_set_cert_cb(context, show_newest_certificate, shared.release()->get());
  return ok_status();
}

struct StoreDeleter {
  void operator()(X509_STORE* store) const noexcept { X509_STORE_free(store); }
};
using UniqueStore = std::unique_ptr<X509_STORE, StoreDeleter>;

// Shows the identity's certificate (and the authority's after it, by which an enrolling island checks its pin), and
// trusts its authority alone.
Status use_identity(SSL_CTX* context, const Identity& identity) {
  ATOLL_ASSIGN_OR_RETURN(const UniqueKey key, parse_key(identity.key_pem));
  ATOLL_ASSIGN_OR_RETURN(const UniqueCertificate certificate, parse_certificate(identity.certificate_pem));
  ATOLL_ASSIGN_OR_RETURN(const UniqueCertificate authority, parse_certificate(identity.authority_pem));
  if (SSL_CTX_use_certificate(context, certificate.get()) != 1 || SSL_CTX_use_PrivateKey(context, key.get()) != 1 ||
      SSL_CTX_check_private_key(context) != 1) {
    return openssl_error(ErrorCode::kCorrupt, "use this identity's key with its certificate");
  }
  UniqueStore store(X509_STORE_new());
  if (!store || X509_STORE_add_cert(store.get(), authority.get()) != 1 ||
      SSL_CTX_add1_chain_cert(context, authority.get()) != 1) {
    return openssl_error(ErrorCode::kInternal, "trust the run's authority");
  }
  SSL_CTX_set_cert_store(context, store.release());  // in place of whatever it trusted before
  return follow_renewals(context, identity);
}

// ---- the enrolment's pin
// --------------------------------------------------------------------------------------------------

struct ExpectedAuthority {
  Digest pin;
  std::string run_id;
};

void free_expected(void*, void* expected, CRYPTO_EX_DATA*, int, long, void*) {
  delete static_cast<ExpectedAuthority*>(expected);
}

int expected_index() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, free_expected);
  return index;
}

X509* find_pinned(STACK_OF(X509) * chain, const Digest& pin) {
  for (int i = 0; i < sk_X509_num(chain); ++i) {
    X509* candidate = sk_X509_value(chain, i);
    if (X509_check_ca(candidate) == 1 && public_key_digest(candidate) == pin) return candidate;
  }
  return nullptr;
}

// Whether the shown chain names another run. Nobody vouches for that; it serves to choose the words of a refusal.
bool names_another_run(STACK_OF(X509) * chain, const std::string& run_id) {
  if (sk_X509_num(chain) == 0) return false;
  const std::string named = organisation_of(sk_X509_value(chain, sk_X509_num(chain) - 1));
  return !named.empty() && named != run_id;
}

// In place of the usual verification: the chain must hold the authority whose public key is pinned, and the leaf must
// verify against that authority alone, with name, dates and purpose.
int verify_against_pin(X509_STORE_CTX* verification, void* argument) {
  const auto& expected = *static_cast<const ExpectedAuthority*>(argument);
  STACK_OF(X509)* chain = X509_STORE_CTX_get0_untrusted(verification);
  X509* authority = find_pinned(chain, expected.pin);
  if (authority == nullptr) {
    X509_STORE_CTX_set_error(verification, names_another_run(chain, expected.run_id) ? kVerifyOtherRun : kVerifyPin);
    return 0;
  }
  STACK_OF(X509)* trusted = sk_X509_new_null();
  if (trusted == nullptr || sk_X509_push(trusted, authority) == 0) {
    sk_X509_free(trusted);
    X509_STORE_CTX_set_error(verification, X509_V_ERR_OUT_OF_MEM);
    return 0;
  }
  X509_STORE_CTX_set0_trusted_stack(verification, trusted);
  const int verified = X509_verify_cert(verification);
  sk_X509_free(trusted);
  return verified == 1 ? 1 : 0;
}

}  // namespace

Result<TlsContext> TlsContext::hub_server(const Identity& hub) {
  ATOLL_ASSIGN_OR_RETURN(UniqueSslContext context, make_context(TLS_server_method()));
  ATOLL_RETURN_IF_ERROR(use_identity(context.get(), hub));
  serve_protocols<choose_for_hub>(context.get());
  return TlsContext(std::move(context));
}

Result<TlsContext> TlsContext::island_server(const Identity& island) {
  ATOLL_ASSIGN_OR_RETURN(UniqueSslContext context, make_context(TLS_server_method()));
  ATOLL_RETURN_IF_ERROR(use_identity(context.get(), island));
  serve_protocols<choose_for_island>(context.get());
  return TlsContext(std::move(context));
}

Result<TlsContext> TlsContext::client(const Identity& identity, std::string_view alpn) {
  ATOLL_ASSIGN_OR_RETURN(UniqueSslContext context, make_context(TLS_client_method()));
  ATOLL_RETURN_IF_ERROR(use_identity(context.get(), identity));
  ATOLL_RETURN_IF_ERROR(offer_protocol(context.get(), alpn));
  return TlsContext(std::move(context));
}

Status set_up_client(SSL_CTX* context, const Identity& identity, std::string_view alpn) {
  ATOLL_RETURN_IF_ERROR(set_up(context));
  ATOLL_RETURN_IF_ERROR(use_identity(context, identity));
  return offer_protocol(context, alpn);
}

Result<TlsContext> TlsContext::enrol_client(const Digest& authority_pin, const std::string& run_id) {
  ATOLL_ASSIGN_OR_RETURN(UniqueSslContext context, make_context(TLS_client_method()));
  ATOLL_RETURN_IF_ERROR(offer_protocol(context.get(), kAlpnEnrol));
  if (X509_VERIFY_PARAM_set1_host(SSL_CTX_get0_param(context.get()), kHubName, 0) != 1) {
    return openssl_error(ErrorCode::kInternal, "expect the hub's name");
  }
  auto expected = std::make_unique<ExpectedAuthority>(ExpectedAuthority{authority_pin, run_id});
  if (SSL_CTX_set_ex_data(context.get(), expected_index(), expected.get()) != 1) {
    return openssl_error(ErrorCode::kInternal, "keep the authority's pin");
  }
  SSL_CTX_set_cert_verify_callback(context.get(), verify_against_pin, expected.release());
  return TlsContext(std::move(context));
}

Result<PeerCertificate> verified_peer(SSL* ssl) {
  const UniqueCertificate certificate(SSL_get1_peer_certificate(ssl));
  if (!certificate) return Error{ErrorCode::kCertificate, "the peer showed no certificate"};
  if (const long result = SSL_get_verify_result(ssl); result != X509_V_OK) {
    return Error{ErrorCode::kCertificate,
                 std::string("the peer's certificate was not accepted: ") + X509_verify_cert_error_string(result)};
  }
  if ((SSL_get_verify_mode(ssl) & SSL_VERIFY_PEER) == 0) {
    return Error{ErrorCode::kCertificate, "the peer's certificate was not asked for, and not verified"};
  }
  ATOLL_ASSIGN_OR_RETURN(std::string name, certified_name(certificate.get()));
  return PeerCertificate{IslandId{std::move(name)}, public_key_digest(certificate.get())};
}

Result<std::string> peer_certificate_pem(SSL* ssl) {
  const UniqueCertificate certificate(SSL_get1_peer_certificate(ssl));
  if (!certificate) return Error{ErrorCode::kCertificate, "the peer showed no certificate"};
  return to_pem(certificate.get());
}

std::string_view negotiated_alpn(SSL* ssl) {
  const unsigned char* data = nullptr;
  unsigned int size = 0;
  SSL_get0_alpn_selected(ssl, &data, &size);
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace atl
