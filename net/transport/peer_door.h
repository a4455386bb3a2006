// What happens at an island's port before anybody is served: accept, TLS, admission, a ring connection's hello. One
// thread does it for all connections, without waiting for any, so that a thousand that say nothing cost a thousand
// sockets and no more. Owned by the PeerListener; everything on its thread, but for wake().
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "net/base/log_limit.h"
#include "net/base/result.h"
#include "net/base/unique_fd.h"
#include "net/tls/context.h"
#include "net/transport/connection_limits.h"
#include "net/transport/ring_inbox.h"
#include "net/transport/tls_connection.h"

namespace atl {

class PeerDoor {
 public:
  struct Calls {
    std::function<Status(const PeerCertificate&)> admit;
    // A member's. It counts as open until closed().
    std::function<void(ConnectionId, TlsConnection)> on_https;
  };

  // `inbox` gets ring connections; it outlives the door.
  static Result<std::unique_ptr<PeerDoor>> open(UniqueFd listening, TlsContext context, const ConnectionSizes& sizes,
                                                std::chrono::milliseconds handshake_timeout, RingInbox& inbox,
                                                Calls calls);

  // Waits until there is something to do, at most so long, and does it.
  void turn(std::chrono::milliseconds most);
  void wake();  // any thread: the turn under way, or the next one, does not wait
  void expect(const std::vector<NetworkAddress>& members) { limits_.expect(members); }
  void closed(ConnectionId id) { limits_.closed(id); }

 private:
  struct Pending {
    UniqueFd socket;                   // until it says something
    std::optional<TlsConnection> tls;  // from then on
    bool known = false;
    bool verified = false;
    short events = 0;  // that are watched
    Bytes hello;       // as much as came
    Deadline deadline;
  };
  enum class Next { kWait, kEnd, kHandedOn };

  PeerDoor(UniqueFd listening, TlsContext context, const ConnectionSizes& sizes,
           std::chrono::milliseconds handshake_timeout, RingInbox& inbox, Calls calls);
  Status start();
  bool watch(int fd, int operation, short events, std::uint64_t id);

  void accept_all();
  void begin(UniqueFd socket);
  void drive(ConnectionId id);
  Next advance(ConnectionId id, Pending& pending);
  Next shake_hands(ConnectionId id, Pending& pending);
  Next welcome(ConnectionId id, Pending& pending);
  Next read_hello(ConnectionId id, Pending& pending);
  Next wait(ConnectionId id, Pending& pending);
  TlsConnection take(Pending& pending);
  void end(ConnectionId id);
  void drop(const ConnectionLimits::Dropped& ids);
  void end_overdue();

  const UniqueFd listening_;
  const TlsContext context_;
  const std::chrono::milliseconds handshake_timeout_;
  RingInbox& inbox_;
  const Calls calls_;
  UniqueFd epoll_, wake_;
  ConnectionLimits limits_;
  LogLimit refused_;
  std::map<ConnectionId, Pending> pending_;  // oldest first, and so by deadline
};

}  // namespace atl
