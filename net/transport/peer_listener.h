// The island's one inbound port. Accepts TLS, admits only members of the run, and hands each connection on by its ALPN:
// ring edges to the RingInbox, HTTPS to the HttpHandler. Bounded by address, by network and by member (PeerDoor,
// ServingTurns): strangers, however many, and members, however greedy, keep no member out. Owns its threads: one for
// the port, one for each HTTPS connection that is served. Start and destroy from one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/base/address.h"
#include "net/base/result.h"
#include "net/tls/context.h"
#include "net/transport/connection_limits.h"
#include "net/transport/http_session.h"
#include "net/transport/ring_inbox.h"
#include "net/transport/serving_turns.h"
#include "net/transport/tls_connection.h"

namespace atl {

struct PeerListenerOptions {
  Address bind{"0.0.0.0", 0};                           // port 0: any free one
  std::chrono::milliseconds handshake_timeout{10'000};  // from accept to the end of a ring connection's hello
  // Half of what the hub has room for: this machine trains. A member's edges come at once, with their contributions.
  ConnectionSizes connections{
      .of_strangers = 256, .of_known = 256, .of_member = RingInbox::kMaxWaitingOfPeer + 16, .of_members = 512};
  ServingSizes serving{};
};

// Whether a peer with a valid certificate is a member now (the roster that the hub pushed). Called on listener threads.
using AdmitPeer = std::function<Status(const PeerCertificate&)>;
// Serves one HTTPS connection to its end, on a listener thread; must heed the session's abort.
using HttpHandler = std::function<void(TlsConnection, HttpSession& session)>;

class PeerListener {
 public:
  // `inbox` outlives the listener.
  static Result<std::unique_ptr<PeerListener>> start(const PeerListenerOptions& options, TlsContext context,
                                                     AdmitPeer admit, RingInbox& inbox, HttpHandler serve_http);
  ~PeerListener();  // stops accepting, ends what it serves, joins

  std::uint16_t port() const;
  // Any thread: ends the HTTPS connections of a peer that is no longer admitted, at once.
  void cut(const IslandId& peer);
  // Any thread: where members are now. Places are kept for whoever comes from there. Names are passed over: members
  // who come from them are known by their first connection.
  void expect(const std::vector<std::string>& hosts);

 private:
  class Impl;
  explicit PeerListener(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace atl
