// N islands of a run that exists in this process alone: certificates, ports on 127.0.0.1, rings.
#pragma once

#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "net/base/result.h"
#include "net/collective/all_reduce.h"
#include "net/transport/peer_listener.h"

namespace atl {

class LoopbackIslands {
 public:
  static Result<LoopbackIslands> start(int count);

  // All islands in order, each of weight 1.
  AllReduceSpec spec() const;
  // All of them at once, a thread each; `rooms` take the canonical bytes.
  std::vector<std::variant<AllReduceReport, AllReduceFailure>> run(const AllReduceSpec& spec,
                                                                   const std::vector<std::vector<float>>& inputs,
                                                                   std::vector<Bytes>& rooms);

 private:
  struct Island {
    IslandId id;
    RingInbox inbox;
    std::optional<TlsContext> dial_context;
    std::optional<RingAllReduce> ring;
    std::unique_ptr<PeerListener> listener;  // after the inbox that it fills
  };
  std::vector<std::unique_ptr<Island>> islands_;
};

}  // namespace atl
