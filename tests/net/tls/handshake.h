// A TLS handshake and one byte each way between two contexts, in memory, as far as both ends get. For tests.
#pragma once

#include <openssl/ssl.h>

#include <functional>
#include <optional>
#include <string>

#include "net/tls/context.h"

namespace atl {

struct SslDeleter {
  void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
};
using UniqueSsl = std::unique_ptr<SSL, SslDeleter>;

// How far one end got. A TLS 1.3 client's handshake returns before the server's verdict, so only a byte counts.
struct EndOfHandshake {
  UniqueSsl ssl;
  bool shaken = false;
  bool read_a_byte = false;
  std::optional<Error> error;
};

struct Handshake {
  EndOfHandshake client;
  EndOfHandshake server;
  bool got_further() const { return client.read_a_byte || server.read_a_byte; }
};

// `adjust_client` may change the client's connection before it starts.
Handshake shake_hands(SSL_CTX* client, SSL_CTX* server, const std::function<void(SSL*)>& adjust_client = {});

}  // namespace atl
