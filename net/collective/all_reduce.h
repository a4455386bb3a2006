// The ring all-reduce of one round's pseudo-gradient: what DiLoCo asks of the network.
//
// Reduce-scatter, then all-gather (Patarasu & Yuan 2009): 2 (N-1)/N of the payload sent per island. On the wire values
// are quantised (WireFormat); sums are accumulated in fp32. The result is the canonical quantised bytes of the weighted
// mean: made once by each chunk's owner and forwarded unchanged, so identical to the last bit on every member.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "kernels/wire_format.h"
#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/base/deadline.h"
#include "net/base/id.h"
#include "net/base/result.h"
#include "net/base/sha256.h"
#include "net/tls/context.h"
#include "net/transport/ring_inbox.h"

namespace atl {

struct RingMember {
  IslandId id;
  Address address;
  double weight = 0;  // tokens trained this round; 0 for one that only receives
};

// One attempt to average one round, as the hub ordered it. Rank r sends to rank r + 1 (mod N).
struct AllReduceSpec {
  OuterStep round;
  Attempt attempt;
  std::vector<RingMember> order;  // rank by position; the sum of weights is positive
  WireFormat wire = WireFormat::kInt8Block;
  int connections_per_edge = 2;
  std::chrono::milliseconds silence_timeout{
      6'000};  // a peer that moves no byte for so long is lost; progress extends it
};

struct AllReduceReport {
  Digest digest;                 // SHA-256 of the canonical bytes
  std::uint64_t bytes_sent = 0;  // payload and framing, before TLS
  std::uint64_t bytes_received = 0;
  Seconds duration{};
};

struct AllReduceFailure {
  Error error;                   // e.g. "all_reduce round 3 attempt 1, rank 2: connection to isl-... reset"
  std::optional<IslandId> peer;  // the neighbour at whose edge it failed, if there is one to name
};

class RingAllReduce {
 public:
  // `inbox` and `dial_context` outlive this.
  RingAllReduce(IslandId self, RingInbox& inbox, const TlsContext& dial_context);

  // input: fp32 [numel], untouched. canonical: encoded_bytes(spec.wire, numel) bytes, written; defined only on success.
  // Blocks the calling thread; ends soon after `abort` is raised (kAborted). No deadline on the whole: silence is what
  // ends it.
  std::variant<AllReduceReport, AllReduceFailure> run(const AllReduceSpec& spec, std::span<const float> input,
                                                      std::span<std::byte> canonical, const AbortSignal& abort);

 private:
  IslandId self_;
  RingInbox& inbox_;
  const TlsContext& dial_context_;
};

}  // namespace atl
