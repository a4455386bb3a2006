#include "tests/net/tls/handshake.h"

#include <openssl/err.h>

namespace atl {
namespace {

constexpr int kMostTurns = 20;

void take_turn(EndOfHandshake& end, const char* name) {
  if (end.error || end.read_a_byte) return;
  ERR_clear_error();
  int result = 0;
  if (!end.shaken) {
    result = SSL_do_handshake(end.ssl.get());
    if (result == 1) {
      end.shaken = true;
      result = SSL_write(end.ssl.get(), "x", 1);
    }
  } else {
    char byte = 0;
    result = SSL_read(end.ssl.get(), &byte, 1);
    end.read_a_byte = result == 1;
  }
  if (result > 0) return;
  const int kind = SSL_get_error(end.ssl.get(), result);
  if (kind != SSL_ERROR_WANT_READ && kind != SSL_ERROR_WANT_WRITE) end.error = tls_error(end.ssl.get(), result, name);
}

}  // namespace

Handshake shake_hands(SSL_CTX* client, SSL_CTX* server, const std::function<void(SSL*)>& adjust_client) {
  Handshake handshake;
  handshake.client.ssl.reset(SSL_new(client));
  handshake.server.ssl.reset(SSL_new(server));
  BIO* client_end = nullptr;
  BIO* server_end = nullptr;
  BIO_new_bio_pair(&client_end, 0, &server_end, 0);
  SSL_set_bio(handshake.client.ssl.get(), client_end, client_end);
  SSL_set_bio(handshake.server.ssl.get(), server_end, server_end);
  SSL_set_connect_state(handshake.client.ssl.get());
  SSL_set_accept_state(handshake.server.ssl.get());
  if (adjust_client) adjust_client(handshake.client.ssl.get());
  for (int turn = 0; turn < kMostTurns; ++turn) {
    take_turn(handshake.client, "client");
    take_turn(handshake.server, "server");
  }
  return handshake;
}

}  // namespace atl
