// The hub's end of one island's mesh connection, over real TLS and WebSocket, that says what a test has it say: any
// message of the protocol, at any time. It keeps no run, and answers nothing by itself.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "net/base/deadline.h"
#include "net/tls/context.h"
#include "net/tls/identity.h"
#include "net/wire/mesh.h"

namespace atl {

class ScriptedHub {
 public:
  // Listens on 127.0.0.1. `hub`: the identity of the run's hub.
  explicit ScriptedHub(const Identity& hub);
  ~ScriptedHub();

  Address address() const;
  // The next message of the island, in order, but for heartbeats; none at the deadline.
  std::optional<IslandMessage> hear(Deadline deadline);
  // The newest; none before the first.
  std::optional<IslandHeartbeat> heartbeat() const;
  // To the island that is connected.
  void say(const HubMessage& message);
  // What it answers to GET /past from now on; before that, and empty: HTTP 404, as a hub of before.
  void tell_past(std::string text);
  int times_asked_for_past() const;
  // Of the island's certificate, once it has said something.
  PeerCertificate peer() const;
  SignedEpoch epoch(std::uint64_t epoch) const;
  HubCommit signed_commit(HubCommit commit) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace atl
