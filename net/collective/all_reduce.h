// The all-reduce of one round's pseudo-gradient, or of one fragment of it: what DiLoCo asks of the network. Round a
// ring, or directly (Schedule).
//
// Reduce-scatter, then all-gather (Patarasu & Yuan 2009): 2 (N-1)/N of the payload sent per island. On the wire values
// are quantised (WireFormat); sums are accumulated in fp32. The result is the canonical quantised bytes of the weighted
// mean: made once by each chunk's owner and forwarded unchanged, so identical to the last bit on every member. Formats
// below 8 bits are not summed hop by hop: their reduce-scatter goes straight to each chunk's owner (direct_reduce.h).
//
// Memory beside input and canonical bytes, whatever the payload: partial sums live encoded at their final place in the
// canonical bytes, so there is no staging; a connection holds some 130 KiB of TLS records to send, or 128 KiB that came
// (2 x 16 connections: 5 MiB), a thread 16 KiB of values; frames and hashes cost some 250 bytes for each 256 KiB of
// canonical bytes (1 GiB: 1 MiB). Contributions sent straight to an owner: 24 MiB that wait to be summed, and 128 KiB
// and two connections for each other member; the direct schedule needs as much, with one connection. The kernel's
// socket buffers come on top, within net.ipv4.tcp_mem. Attempts of several fragments at once share the edges'
// connections, so that those cost no more; the rest is of each.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "kernels/wire_codec.h"
#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/base/deadline.h"
#include "net/base/download_pace.h"
#include "net/base/id.h"
#include "net/base/mutex.h"
#include "net/base/result.h"
#include "net/base/sha256.h"
#include "net/collective/connection_pool.h"
#include "net/collective/connection_tuner.h"
#include "net/collective/dial_ahead.h"
#include "net/collective/edge_pacing.h"
#include "net/collective/peer_silences.h"
#include "net/collective/progress_meter.h"
#include "net/collective/ring_member.h"
#include "net/collective/upload_share.h"
#include "net/tls/context.h"
#include "net/transport/ring_inbox.h"
#include "net/wire/schedule.h"

namespace atl {

class PartialSums;
struct RingPayload;

// One attempt to average one round, as the hub ordered it.
struct AllReduceSpec {
  OuterStep round;
  Attempt attempt;
  // The part of the model that it averages (net/model/fragments.h), of so many in the run: attempts of different
  // fragments may be under way at once, and share an edge's kMaxConnectionsPerEdge.
  FragmentId fragment = {};
  int fragments = 1;
  std::vector<RingMember> order;  // rank by position; the sum of weights is positive
  // kDirect: of each pair the lower rank dials the other, whatever dials_previous says; each pair has one connection.
  Schedule schedule = Schedule::kRing;
  WireFormat wire = WireFormat::kInt8Block;
  std::int64_t bucket_numel = std::int64_t{64} << 20;  // 256 MiB of fp32; a multiple of every format's block
  // By bucket, on every member the same: these are averaged already, their canonical bytes stay as they are and do not
  // travel; the digest is over all. Empty: none.
  std::vector<bool> final_buckets = {};
  // What rounds before lost in encoding and what this one loses, each [numel] and not the same memory; empty: none. Of
  // final buckets nothing is touched: keep residual_out from one attempt of a round to the next, and take it for the
  // next round's residual_in only when the round is committed.
  ErrorFeedback feedback = {};
  int connections_per_edge = 2;  // to the next rank; the previous one chooses its own. 0: by goodput
                                 // (connection_tuner.h); at most most_connections_per_edge(fragments)
  int threads = 0;               // that encode, encrypt and move bytes; 0: as many as processors, at most 4
  // Of the connections on which it sends, where the kernel has it and lets us; else they have the system's own.
  std::string congestion_control = "bbr";
  // That its owner lets it send at this moment, with all other attempts that move bytes meanwhile; see UploadShare.
  UploadShare::Most most_bytes_per_second = {};
  // What its owner lets the island receive, which all attempts share; null: as the link can. Outlives the call.
  DownloadPace* download = nullptr;
  // A peer that moves no byte for so long is lost, or for half as long on an edge that never pauses (silence_limit.h);
  // progress extends it.
  std::chrono::milliseconds silence_timeout{6'000};
  // How far it is, while the ring runs: at most four times a second, on the thread that calls run(). May be empty; must
  // not block.
  ProgressMeter::Tell on_progress = {};
  // Bytes of the canonical bytes that will not change any more, each once, in any order; those of final buckets too. On
  // any of the ring's threads; must not block. May be empty.
  std::function<void(std::size_t offset, std::size_t count)> on_final = {};
};

// How an attempt cuts an input of so many values: what its members send, and who shows its chunks later, cuts alike.
RingPayload payload_of(const AllReduceSpec& spec, std::int64_t numel);

// Where an all-reduce's duration went, one part after the other.
struct AllReducePhases {
  Seconds connect{};         // until bytes could move
  Seconds quantise{};        // what each of its threads, on average, spent on encoding and adding, bytes under way
  Seconds reduce_scatter{};  // the rest of the time until this island had its last sum
  Seconds all_gather{};      // from there to the end, the digest included
};

struct AllReduceReport {
  Digest digest;                 // canonical_digest (canonical_digest.h)
  std::uint64_t bytes_sent = 0;  // payload and framing, before TLS
  std::uint64_t bytes_received = 0;
  std::uint64_t bytes_retransmitted = 0;  // to the next rank, or directly to all, by the kernel's count
  int hops = 0;                           // one after the other, that a value's sum and its result take
  Seconds duration{};
  AllReducePhases phases = {};
  std::string congestion_control = {};  // of the connections to the next rank, e.g. "bbr"; empty in a ring of one
  int connections = 0;                  // to the next rank, or with all others
  int connections_reused = 0;           // of those: kept open since an attempt before
  // The next rank (no id in a ring of one), and what this island sent to it while bytes moved.
  IslandId next = {};
  double bytes_per_second = 0;
  IslandId previous = {};  // the rank before, and what came from it while bytes moved
  double bytes_per_second_received = 0;
  // What the link to it carries. at_least: it was never seen full, so that this is but what was sent.
  double link_bytes_per_second = 0;
  double rtt_seconds = 0;  // the least seen; 0: not measured
  bool at_least = true;
};

struct AllReduceFailure {
  Error error;  // e.g. "all_reduce round 3 attempt 1, rank 2: connection to isl-... reset"
  std::optional<IslandId>
      peer;  // the neighbour (directly: the member) at whose edge it failed, if there is one to name
  // By bucket: whole in the canonical bytes, which need not be averaged again while the members stay a subset of this
  // attempt's. Empty: none.
  std::vector<bool> whole_buckets = {};
  // Nothing moved at that edge for as long as it may (silence_limit.h), or, when another member ended the attempt
  // (kAborted), for half as long. Not so where the peer closed a connection.
  bool silent = false;
  // That edge's sender said that it lives and sent no data for long (edge_monitor.h), or something of it still lacked
  // when another ended the attempt: how many bytes of data had come.
  std::optional<std::uint64_t> stalled_after = {};
  bool never_met = false;  // no connection to that peer came to stand
};

// Attempts of different fragments may run at the same time, a thread each. Nothing of one is seen by another: its
// connections, before, while and after it has them, are of its fragment alone. They share what is there once: the link
// to a peer (edge_pacing.h) and the owner's limits (upload_share.h, download_pace.h).
class RingAllReduce {
 public:
  // `inbox` and `dial_context` outlive this.
  RingAllReduce(IslandId self, RingInbox& inbox, const TlsContext& dial_context);
  ~RingAllReduce() { ends_.raise("the ring ends"); }
  RingAllReduce(const RingAllReduce&) = delete;
  RingAllReduce& operator=(const RingAllReduce&) = delete;

  // input: fp32 [numel], untouched. canonical: encoded_bytes(spec.wire, numel) bytes; final buckets are read, the
  // others written; defined on success, and for whole buckets after a failure. One call at a time for each fragment. On
  // success connections stay open for the fragment's next attempt with the same neighbours and schedule; on failure all
  // of the fragment's are closed, which tells the neighbours. Blocks the calling thread; ends soon after `abort` is
  // raised (kAborted). No deadline on the whole: silence is what ends it.
  std::variant<AllReduceReport, AllReduceFailure> run(const AllReduceSpec& spec, std::span<const float> input,
                                                      std::span<std::byte> canonical, const AbortSignal& abort);
  // Any thread: dials ahead what the next attempts will need, as far as they can be told, until one begins, which takes
  // what stands. Returns at once.
  void prepare(NextAttempts next) { ahead_.prepare(std::move(next)); }
  bool await_prepared(Deadline deadline) { return ahead_.await_prepared(deadline); }  // false: it is still at it
  // Any thread: closes the connections that are kept open with one that is no longer a member, of all fragments. Those
  // of an attempt under way are closed when the next one of its fragment begins without it.
  void forget(const IslandId& peer);
  // When no attempt is to come, before the connections close: waits, 3 s at most, for what the last one has sent to be
  // acknowledged. The kernel gives up what waits on a closed connection once something comes there, as a receipt may.
  void finish();
  // Who else sends, to share the owner's limit with; as long as this lives.
  AttemptsUnderWay& under_way() { return under_way_; }

 private:
  // What attempts of one fragment leave to the next one.
  struct OfFragment {
    explicit OfFragment(const TlsContext& dial_context) : pool(dial_context) {}
    std::atomic<bool> running{false};  // an attempt is under way: what is below is its own, but for pool.forget()
    ConnectionPool pool;
    // Used by the attempt under way: of edges that this island dials, and of peers.
    std::map<EdgeEnd, ConnectionTuner> tuners = {};
    PeerSilences silences = {};
  };

  std::variant<AllReduceReport, AllReduceFailure> run_with_peers(const AllReduceSpec& spec, Rank self,
                                                                 const RingPayload& payload, const PartialSums& sums,
                                                                 std::span<std::byte> canonical,
                                                                 const AbortSignal& abort);
  std::variant<AllReduceReport, AllReduceFailure> run_directly(const AllReduceSpec& spec, Rank self,
                                                               const RingPayload& payload, const PartialSums& sums,
                                                               std::span<std::byte> canonical,
                                                               const AbortSignal& abort);
  ConnectionTuner& tuner_of(const AllReduceSpec& spec, const EdgeEnd& end);
  int connections_of(const AllReduceSpec& spec, const EdgeEnd& end);
  OfFragment& of(FragmentId fragment) { return fragments_[fragment.value]; }
  LinkPacing& link_to(const IslandId& next);
  PeerSilences& silences_of(const AllReduceSpec& spec);  // begins the attempt
  double fastest_link();                                 // of those that rings have filled; 0: none
  void keep_warm();
  DialAhead::Ring dialled_ahead();

  IslandId self_;
  RingInbox& inbox_;
  const TlsContext& dial_context_;
  std::deque<OfFragment> fragments_;  // kMaxFragments, which stay where they are
  AttemptsUnderWay under_way_;
  Mutex links_mutex_;
  std::map<IslandId, LinkPacing> links_ ATOLL_GUARDED_BY(links_mutex_);  // by the next rank; each stays where it is
  LinkPacing own_link_;                                                  // to everybody, of direct exchanges
  AbortSignal ends_;
  DialAhead ahead_;
  std::jthread warms_;  // what is kept from attempt to attempt; last, as it uses the rest
};

}  // namespace atl
