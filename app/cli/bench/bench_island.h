// One island of a benchmark: its inbound port, the inbox behind it, and the all-reduce on top, kept from one all-reduce
// to the next as a run keeps them. One thread.
#pragma once

#include <memory>

#include "net/collective/all_reduce.h"
#include "net/tls/authority.h"
#include "net/tls/identity.h"
#include "net/transport/peer_listener.h"

namespace atl {

class BenchIsland {
 public:
  static Result<std::unique_ptr<BenchIsland>> start(const Identity& identity, const Address& bind);

  const IslandId& id() const { return id_; }
  std::uint16_t port() const { return listener_->port(); }
  RingAllReduce& ring() { return ring_; }

 private:
  BenchIsland(IslandId id, TlsContext dial_context)
      : id_(std::move(id)), dial_context_(std::move(dial_context)), ring_(id_, inbox_, dial_context_) {}

  IslandId id_;
  TlsContext dial_context_;
  RingInbox inbox_;
  RingAllReduce ring_;
  std::unique_ptr<PeerListener> listener_;  // after the inbox that it fills
};

// Identities of `count` islands of a run that lives as long as they do; nothing of it touches the disk.
Result<std::vector<Identity>> make_bench_identities(int count);

}  // namespace atl
