// The all-reduce without a ring: a direct reduce-scatter, then a direct all-gather. Every member has a connection to
// every other one. It sends each its encoded weighted values of the chunk that the other owns, and sends everybody the
// sums of its own: two hops, where a ring has 2 (N-1). As many bytes travel, 2 (N-1)/N of the payload from each member,
// but for those without weight, which contribute none. For payloads that are small beside the links' delay, and links
// that lose packets, where each of a ring's hops waits for the slowest recovery; it wants that everybody reaches
// everybody, which whoever chooses it must know: of each pair the lower rank dials.
//
// Buckets, chunks, sub-chunks and owners are the ring's, and so is each sum, to the last bit: the owner of a chunk adds
// the contributions in the order in which they would have come by, its own last (ring_bytes_test).
//
// It cannot lock up. Contributions depend on local input alone, so a sender always has the next one, and never waits
// with it for anything but the socket. An owner leaves one unread while it has no room, which it has again when the
// other members have contributed as much; whoever is furthest behind is always read, so its contributions come in, so
// every sum is made. Sums are read into places that are theirs alone. That the two share a connection, where an unread
// contribution holds up the sums behind it, changes nothing of this: what an owner waits for comes first to it by
// connections that it reads. Both kinds are numbered each for itself, so a sender is free in how it mixes them.
//
// On a connection that an exchange before has left either end begins at once, without waiting for the other's hello,
// which is half a round trip under way. Where the dialler has dropped it meanwhile, and dials anew, whoever waits for
// it begins again.
//
// One thread, that of the caller, does it all: what this schedule is for are links of which one processor has many.
// What all connections carry together is paced (EdgePacing), and those that have something to send have equal parts of
// it: all carry as much, and the last one's end counts. Left to itself, BBR has each of the N-1 that share an upload
// send what that one has had for a moment when the others waited: a third of all bytes were sent twice (4 islands, 100
// Mbit/s, 300 ms, 1 % loss; with pacing the 1 % that was lost, in less time). The report says of links to single peers
// only what was sent (AllReduceReport::at_least).
#pragma once

#include <deque>
#include <optional>
#include <variant>
#include <vector>

#include "net/collective/all_reduce.h"
#include "net/collective/attempt_edges.h"
#include "net/collective/edge_pacing.h"
#include "net/collective/exchange_peer.h"
#include "net/collective/peer_dialler.h"
#include "net/collective/peer_watch.h"
#include "net/collective/progress_meter.h"

namespace atl {

class DirectExchange {
 public:
  // Contributions that came and are not summed yet, of all members together; but of each at least two sub-chunks of
  // kSubChunkBytes. Those that a sum begins with wait in its place.
  static constexpr std::size_t kMostWaitingBytes = std::size_t{24} << 20;

  // World size at least 2; a format that is summed hop by hop. `pool`: of spec.fragment. `link`: what exchanges before
  // have seen of this island's way to everybody. `silences`: of all members. References outlive this.
  DirectExchange(const AllReduceSpec& spec, Rank self, const RingPayload& payload, const PartialSums& sums,
                 std::span<std::byte> canonical, ConnectionPool& pool, RingInbox& inbox, LinkPacing& link,
                 PeerSilences& silences, const UploadShare& upload);

  // Once. Blocks until everything is sent, received and hashed; then `canonical` is whole, and connections are kept for
  // the fragment's next attempt. On failure all of the fragment's are closed, also those that still come. All of the
  // report is set but duration and phases.
  std::variant<AllReduceReport, AllReduceFailure> run(const AbortSignal& abort);

  Clock::time_point moving_since() const { return moving_since_; }  // the first connection stood

 private:
  struct Member {
    Member(const ExchangeContext& exchange, const AttemptEdge& edge, std::size_t slots)
        : peer(exchange, edge.peer, slots), is_dialled(edge.is_dialled) {}
    ExchangePeer peer;
    const bool is_dialled;           // by this member; else it dials
    std::optional<PeerWatch> watch;  // once joined, and greeted where the peer dials
    std::uint64_t retransmitted_before = 0;
  };
  using Failed = std::optional<AllReduceFailure>;

  EdgeEnd end_of(std::size_t rank) const { return {spec_.order[rank].id, RingRole::kExchange}; }
  std::size_t slots() const;
  Member& member(std::size_t rank) { return members_[rank < self_ ? rank : rank - 1]; }
  const Member& member(std::size_t rank) const { return members_[rank < self_ ? rank : rank - 1]; }

  void begin();
  Failed exchange(const AbortSignal& abort);
  bool complete() const;

  Failed failed(const Error& error, std::size_t rank) const;
  enum class Hello { kCame, kDue };
  void join(Member& member, ConnectionPool::Edge edge, Hello hello);
  // It began on a connection that an attempt before had left, and its dialler has not.
  bool may_have_left(const Member& member) const;
  void leave(Member& member);
  bool leaves(Member& member, const Error& error);  // an error that says no more than that its dialler left there
  void watch(Member& member, Clock::time_point now);
  Failed take_dialled();
  Failed take_arrived();
  void keep_connections();

  Failed receive(Clock::time_point now, bool& moved);
  bool lacks(const Member& member) const;  // its contribution to the next own sub-chunk
  bool sum_next();
  Failed send(Clock::time_point now, bool& moved);
  bool hash_piece();
  void wait(const AbortSignal& abort);

  PeerWatch::Facts facts_of(const Member& member, bool held) const;
  bool most_others_lost_all(const Member& but) const;
  Failed look(Clock::time_point now);
  std::chrono::milliseconds patience(Clock::time_point now) const;
  void keep_limits(std::size_t busy, Clock::time_point now);
  AllReduceFailure aborted(const std::string& reason, Clock::time_point now) const;

  ProgressMeter::Counts counts() const;
  AllReduceReport report() const;

  const AllReduceSpec& spec_;
  const std::size_t self_;
  const std::size_t first_;  // with whose contribution own sums begin; the ring's next rank
  const RingPayload& payload_;
  const PartialSums& sums_;
  ConnectionPool& pool_;
  RingInbox& inbox_;
  LinkPacing& link_;
  PeerSilences& silences_;
  const UploadShare& upload_;
  const std::vector<RingSubChunk> own_;
  FinalPieces pieces_;
  const ExchangeContext exchange_;
  std::deque<Member> members_;  // all others, by rank
  const std::chrono::milliseconds look_every_;
  std::optional<ProgressMeter> meter_;  // none: nobody wants to know how far it is
  std::size_t summed_ = 0;              // of own_
  std::size_t turn_ = 0;                // who is read first
  int reused_ = 0;
  std::vector<std::size_t> awaited_;        // ranks whose hello has not come
  std::optional<EdgePacing> pacing_;        // of those that have joined
  std::optional<double> receives_at_most_;  // bytes/s of a connection, as the sockets know it
  Clock::time_point began_, moving_since_, last_look_, last_arrivals_;
  Clock::time_point held_until_;  // nothing is read, by the owner's limit
  std::vector<pollfd> polls_;
  PeerDialler dialler_;  // last: its threads use the pool
};

}  // namespace atl
