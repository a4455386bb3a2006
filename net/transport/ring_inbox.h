// Where inbound ring connections wait, after their hello, for the all-reduce attempt that they belong to. Thread-safe.
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/deadline.h"
#include "net/base/id.h"
#include "net/transport/tls_connection.h"
#include "net/wire/ring_frame.h"

namespace atl {

class RingInbox {
 public:
  // Keeps the connection until its attempt asks for it. Connections of attempts older than the newest one taken, and more than
  // a bounded number waiting, are dropped.
  void deliver(RingHello hello, TlsConnection connection);

  // All `count` connections of the edge from `peer` in this attempt, in the order of their index.
  Result<std::vector<TlsConnection>> take(OuterStep round, Attempt attempt, const IslandId& peer, int count,
                                          Deadline deadline, const AbortSignal& abort);

 private:
  struct Waiting {
    RingHello hello;
    TlsConnection connection;
  };
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Waiting> waiting_;  // guarded by mutex_
};

}  // namespace atl
