// The island's one inbound port. Accepts TLS, admits only members of the run, and hands each connection on by its ALPN:
// ring edges to the RingInbox, HTTPS to the HttpHandler. Owns its threads; start and destroy from one thread.
#pragma once

#include <functional>
#include <memory>

#include "net/base/address.h"
#include "net/base/result.h"
#include "net/tls/context.h"
#include "net/transport/ring_inbox.h"
#include "net/transport/tls_connection.h"

namespace atl {

struct PeerListenerOptions {
  Address bind{"0.0.0.0", 0};  // port 0: any free one
  std::chrono::milliseconds handshake_timeout{10'000};
  int max_http_connections = 16;    // served at once, a thread each; more wait
  int max_pending_handshakes = 64;  // more are closed at once
};

// Whether a peer with a valid certificate is a member now (the roster that the hub pushed). Called on listener threads.
using AdmitPeer = std::function<Status(const PeerCertificate&)>;
// Serves one HTTPS connection to its end, on a listener thread; must heed `abort` (raised when the listener stops, or
// cuts this peer).
using HttpHandler = std::function<void(TlsConnection, const AbortSignal& abort)>;

class PeerListener {
 public:
  // `inbox` outlives the listener.
  static Result<std::unique_ptr<PeerListener>> start(PeerListenerOptions options, TlsContext context, AdmitPeer admit,
                                                     RingInbox& inbox, HttpHandler serve_http);
  ~PeerListener();  // stops accepting, ends what it serves, joins

  std::uint16_t port() const;
  // Any thread: ends the HTTPS connections of a peer that is no longer admitted, at once.
  void cut(const IslandId& peer);

 private:
  class Impl;
  explicit PeerListener(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace atl
