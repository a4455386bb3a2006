// The island's end of the mesh: one WebSocket to the hub, heartbeats, reconnection with backoff. Owns its thread.
#pragma once

#include <functional>
#include <memory>

#include "net/base/address.h"
#include "net/base/deadline.h"
#include "net/base/result.h"
#include "net/tls/identity.h"
#include "net/wire/mesh.h"

namespace atl {

struct MeshClientOptions {
  std::vector<Address> hub_addresses;  // tried in turn
  std::chrono::milliseconds connect_timeout{5'000};
  std::chrono::milliseconds reconnect_for{120'000};  // then give up
};

class MeshClient {
 public:
  struct Callbacks {
    // All on the client's thread; must not block.
    std::function<IslandHello()> hello;             // asked before each (re)connection
    std::function<IslandHeartbeat()> heartbeat;     // asked every heartbeat period
    std::function<void(const HubMessage&)> urgent;  // every message, before it is queued: roster and aborts act at once
    // A connection broke, or a try to make one failed; it tries again for so long. And: it stands again. May be empty.
    std::function<void(const std::string& why, Seconds tries_for)> lost = {};
    std::function<void()> back = {};
  };

  static Result<std::unique_ptr<MeshClient>> start(MeshClientOptions options, const Identity& identity,
                                                   Callbacks callbacks);
  ~MeshClient();  // sends what is queued (at most 1 s), closes, joins

  // Any thread. Queued while disconnected (all but heartbeats); false once the client has given up or is closed.
  bool send(const IslandMessage& message);
  // The next message of the hub, in order. kTimeout at the deadline; kUnreachable, kCertificate, kVersionUnsupported
  // ... once the client has given up, with the reason in words.
  Result<HubMessage> next(Deadline deadline);
  bool connected() const;

 private:
  class Impl;
  explicit MeshClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace atl
