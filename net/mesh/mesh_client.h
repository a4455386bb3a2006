// The island's end of the mesh: one WebSocket to the hub, heartbeats, reconnection with backoff. Owns its thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "net/base/address.h"
#include "net/base/deadline.h"
#include "net/base/result.h"
#include "net/tls/identity.h"
#include "net/wire/mesh.h"

namespace atl {

struct MeshClientOptions {
  std::vector<Address> hub_addresses;  // tried in turn
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds welcome_timeout{30'000};  // from the hello; a connection without one is cut
  // Until the hub has welcomed this island for the first time: then give up. One that was welcomed tries for ever.
  std::chrono::milliseconds reconnect_for{120'000};
  std::chrono::milliseconds first_pause{100};  // between two tries
  std::chrono::milliseconds longest_pause{10'000};
};

class MeshClient {
 public:
  struct Callbacks {
    // All on the client's thread; must not block.
    std::function<IslandHello()> hello;             // asked before each (re)connection
    std::function<IslandHeartbeat()> heartbeat;     // asked every heartbeat period
    std::function<void(const HubMessage&)> urgent;  // every message, before it is queued: roster and aborts act at once
    // Each commit with the certificate under which its signature was checked, before `urgent`. May be empty.
    std::function<void(std::shared_ptr<const SignedCommit>)> committed = {};
    // The epoch that the hub shows, its signature checked; an error: this is not the hub to follow, and another try is
    // made later. May be empty.
    std::function<Status(const SignedEpoch&)> meet = {};
    // A connection broke, or a try to make one failed; it tries again for so long, or for ever. And: the hub has
    // welcomed this island on a new one. May be empty.
    std::function<void(const std::string& why, std::optional<Seconds> tries_for)> lost = {};
    std::function<void()> back = {};
  };

  static Result<std::unique_ptr<MeshClient>> start(MeshClientOptions options, const Identity& identity,
                                                   Callbacks callbacks);
  ~MeshClient();  // sends what is queued (at most 1 s), closes, joins

  // Any thread. Queued while disconnected (all but heartbeats); false once the client has given up or is closed.
  bool send(const IslandMessage& message);
  // The next message of the hub, in order. kTimeout at the deadline. Once the client has given up, the reason in words:
  // the verified hub's own (its goodbye, kPermissionDenied, kVersionUnsupported), or kUnreachable.
  Result<HubMessage> next(Deadline deadline);
  // Any thread: a next() under way, or the one after this, ends at once (kTimeout, if there is no message).
  void wake();
  bool connected() const;

 private:
  class Impl;
  explicit MeshClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace atl
