// N islands in one process, each with its own inbound port on this machine, certificate and inbox: real TLS, no hub.
// For tests and benches of the ring; aborts the process when it cannot be set up.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "net/collective/all_reduce.h"
#include "net/collective/ring_edges.h"
#include "net/transport/peer_listener.h"
#include "tests/fakes/test_run.h"
#include "tests/timing.h"

namespace atl {

struct MemberResult {
  std::variant<AllReduceReport, AllReduceFailure> outcome;
  Bytes canonical;

  bool ok() const { return outcome.index() == 0; }
  const AllReduceReport& report() const { return std::get<0>(outcome); }
  const AllReduceFailure& failure() const { return std::get<1>(outcome); }
};

struct LoopbackIsland {
  Identity identity;
  RingInbox inbox;
  std::optional<TlsContext> dial_context;
  std::optional<RingAllReduce> ring;
  std::unique_ptr<PeerListener> listener;  // after the inbox that it fills
};

struct RingEdges {
  std::vector<TlsConnection> to_next;
  std::vector<TlsConnection> from_previous;
};

class LoopbackRing {
 public:
  // Those of `older` know no receipts. Between addresses 127.*.*.* none are given and no link is learned.
  explicit LoopbackRing(int world_size, const std::vector<int>& older = {}, std::string host = "127.0.0.1");

  LoopbackIsland& island(int rank) { return *islands_[static_cast<std::size_t>(rank)]; }
  const IslandId& id(int rank) { return island(rank).identity.name; }
  int world_size() const { return static_cast<int>(islands_.size()); }
  TestRun& test_run() { return run_; }

  // All islands in order, each of weight 1; silence is waited for for ever.
  AllReduceSpec spec(WireFormat wire) const;

  // One member's part, on the calling thread.
  MemberResult run_member(int rank, const AllReduceSpec& spec, std::span<const float> input, const AbortSignal& abort,
                          Bytes room = {});
  // Members named in `ranks` (all when empty), a thread each; results by position in `ranks`.
  // `rooms`: where their canonical bytes go; made when missing.
  std::vector<MemberResult> run(const AllReduceSpec& spec, const std::vector<std::vector<float>>& inputs,
                                std::vector<int> ranks = {}, std::vector<Bytes> rooms = {});
  // The edges of a member that a test plays itself, to misbehave on them.
  RingEdges edges_of(int rank, const AllReduceSpec& spec, std::int64_t numel);

  AbortSignal abort;  // of all members that run() starts

 private:
  TestRun run_;
  std::string host_;
  std::vector<std::unique_ptr<LoopbackIsland>> islands_;
};

}  // namespace atl
