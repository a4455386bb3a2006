// The connections that this island dialled for the ring, kept open between attempts: their congestion windows are warm
// and nobody shakes hands. One that broke or went stale meanwhile is replaced by a new dial, and nobody hears of it.
// Of one fragment, whose attempts alone they serve. Used by the thread that runs its all-reduce; forget(), keep_warm()
// and take(), of different ends at once, by any.
#pragma once

#include <map>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/base/deadline.h"
#include "net/base/id.h"
#include "net/base/mutex.h"
#include "net/base/result.h"
#include "net/tls/context.h"
#include "net/transport/tls_connection.h"
#include "net/wire/ring_frame.h"

namespace atl {

// One end of an edge: who is at the other, and what this island does on it. Two islands alone share two edges.
struct EdgeEnd {
  IslandId peer;
  RingRole role = RingRole::kSends;
  auto operator<=>(const EdgeEnd&) const = default;
};

class ConnectionPool {
 public:
  // `context` outlives this.
  explicit ConnectionPool(const TlsContext& context) : context_(context) {}

  struct Edge {
    std::vector<TlsConnection> connections;
    int reused = 0;
  };
  // `count` connections of that edge; those that are missing are dialled at once in parallel, each with all of the
  // time.
  Result<Edge> take(const EdgeEnd& end, const Address& address, int count, Deadline deadline, const AbortSignal& abort);
  // Of those that are kept and open.
  int count(const EdgeEnd& end, const Address& address);
  // For the next attempt. Connections that are in the middle of a frame must not come back.
  void give_back(const EdgeEnd& end, const Address& address, std::vector<TlsConnection> connections);
  // Closes those of other edges.
  void keep_only(const std::vector<EdgeEnd>& ends);
  void forget(const IslandId& peer);  // closes those to it
  void finish(Deadline deadline);     // RingAllReduce::finish()
  // Call it every kWarmEvery while nobody takes: the peers say that they live, so that the next attempt need not ask,
  // and what is gone is closed. Some 100 bytes a connection and call. Never waits.
  void keep_warm();
  static constexpr std::chrono::milliseconds kWarmEvery{4'000};

 private:
  struct Kept {
    Address address;
    std::vector<TlsConnection> connections;
  };
  void drop_dead(std::vector<TlsConnection>& connections, RingRole role, const AbortSignal& abort);

  const TlsContext& context_;
  Mutex mutex_;
  std::map<EdgeEnd, Kept> kept_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace atl
