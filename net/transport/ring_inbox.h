// Where inbound ring connections wait for the all-reduce attempt that they belong to: new ones after their hello, and
// those of an attempt gone by until the next hello comes on them. Thread-safe; one thread at a time takes.
#pragma once

#include <poll.h>

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/deadline.h"
#include "net/base/id.h"
#include "net/base/mutex.h"
#include "net/base/unique_fd.h"
#include "net/transport/tls_connection.h"
#include "net/wire/ring_frame.h"

namespace atl {

class RingInbox {
 public:
  static constexpr std::size_t kMaxWaitingOfPeer = 2 * kMaxConnectionsPerEdge;
  static constexpr std::size_t kMaxWaiting = 256;

  RingInbox();

  // Keeps the connection until its attempt asks for it. Dropped: connections of attempts older than the newest one
  // asked for, and, when more than the bounds wait, those that came first.
  void deliver(RingHello hello, TlsConnection connection);

  // A certified peer began a connection with something else than a hello of this version: take() for it ends with that.
  void refuse(const IslandId& peer, Error reason);

  struct Edge {
    std::vector<TlsConnection> connections;  // in the order of their index
    int reused = 0;                          // of those: parked before
  };
  // All connections of the edge to expected.from, as many as its hellos say. Every other field of the hellos must be as
  // expected: kProtocol, naming the peer, when one differs. (Two islands alone share two edges, which their roles tell
  // apart.) kTimeout, kAborted; kPeerLost when a connection is closed after the first one's hello came. `on_tick` is
  // called several times a second meanwhile.
  Result<Edge> take(const RingHello& expected, Deadline deadline, const AbortSignal& abort,
                    const std::function<void()>& on_tick = {});

  // Keeps connections open on which the next hello is awaited. `surplus` was read beyond the attempt that they ended.
  struct Parked {
    TlsConnection connection;
    Bytes surplus;
  };
  void park(std::vector<Parked> connections);
  // Closes parked connections of everybody else.
  void keep_parked_of(const std::vector<IslandId>& peers);
  // The hub began anew, and rounds and attempts may count back: what waits is of no attempt to come. Those that are
  // parked stay.
  void forget_attempts();
  // Closes all connections of a peer that is no longer a member.
  void forget(const IslandId& peer);

 private:
  struct Waiting {
    RingHello hello;
    TlsConnection connection;
    bool was_parked = false;
  };
  using Arrived = std::optional<Result<Edge>>;
  // What take returns, when it need not wait longer. `arrived` counts connections for the message of a timeout.
  Arrived take_arrived(const RingHello& expected, int& arrived);
  bool is_cut(const RingHello& expected, bool parked_closed);
  void drop_outdated(std::vector<Waiting>& dropped);
  bool listen_to_parked(const IslandId& peer);
  void append_polls(const IslandId& peer, std::vector<pollfd>& polls);

  UniqueFd arrival_;  // eventfd: a delivery wakes the taker, which also watches its abort signal
  Mutex mutex_;
  std::vector<Waiting> waiting_ ATOLL_GUARDED_BY(mutex_);  // oldest first
  std::vector<Parked> parked_ ATOLL_GUARDED_BY(mutex_);    // oldest first
  struct Refusal {
    Error reason;
    Clock::time_point when;
  };
  std::map<IslandId, Refusal> refusals_ ATOLL_GUARDED_BY(mutex_);  // of the last seconds
  std::pair<OuterStep, Attempt> newest_asked_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace atl
