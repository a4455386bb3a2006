// Where inbound ring connections wait for the all-reduce attempt that they belong to, from their hello on, and between
// two attempts for the next hello (parked_connections.h), which may have been dialled ahead. Attempts of different
// fragments run at once: a connection is of one fragment, from its first hello on, and no attempt of another one takes
// it or closes it. Thread-safe; of each fragment one thread at a time takes.
#pragma once

#include <poll.h>

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/deadline.h"
#include "net/base/id.h"
#include "net/base/mutex.h"
#include "net/base/unique_fd.h"
#include "net/transport/parked_connections.h"
#include "net/transport/tls_connection.h"
#include "net/wire/ring_frame.h"

namespace atl {

// Which field of a peer's hello differs, for a message; empty when it is the expected one.
std::string hello_difference(const RingHello& hello, const RingHello& expected);

class RingInbox {
 public:
  // Of one peer; as many are parked at most, beside them.
  static constexpr std::size_t kMaxWaitingOfPeer = ParkedConnections::kMostOfPeer;
  // kMaxDirectIslands for each fragment beyond the first: everybody's contributions to each may come at once.
  static constexpr std::size_t kMaxWaiting = 256 + (kMaxFragments - 1) * kMaxDirectIslands;

  RingInbox();

  // Keeps the connection until its attempt asks for it. Dropped: connections of attempts older than the newest one of
  // their fragment that was asked for, and, when more than the bounds wait, those that came first; of one peer those of
  // the fragment of which it has most, so that one fragment's do not push out another's.
  void deliver(RingHello hello, TlsConnection connection);

  // Who would dial this island in the next attempts, and how many connections for each of the run's fragments: these
  // may dial ahead, in place of those that were named before. What they dialled stays; with `takes_padding` what they
  // pad it with is read at once, kMostPaddingOfPeer of each.
  void expect_ahead(Schedule schedule, const std::map<IslandId, int>& peers, bool takes_padding,
                    std::uint32_t fragments = kMaxFragments);
  // Answers, and keeps it as if an attempt had parked it. False, and it is closed: nobody said that this peer may, or
  // it has enough, or as much waits as may. Nothing that waits gives way to it.
  bool park_ahead(const RingAhead& ahead, TlsConnection connection);
  // What poll(2) is to watch for padding, and for read_ahead() to be called.
  void append_ahead(std::vector<pollfd>& polls);
  void read_ahead();

  // A certified peer began a connection with something else than a hello of this version: take() for it ends with that,
  // of each fragment.
  void refuse(const IslandId& peer, const Error& reason);

  struct Edge {
    std::vector<TlsConnection> connections;  // in the order of their index
    int reused = 0;                          // of those: parked before
  };
  // All connections of the edge to expected.from and of expected.fragment, as many as its hellos say. Every other field
  // of the hellos must be as expected: kProtocol, naming the peer, when one differs. (Two islands alone share two
  // edges, which their roles tell apart.) kTimeout, kAborted; kPeerLost when a connection is closed after the first
  // one's hello came. `on_tick` is called several times a second meanwhile; once it says false nobody waits for the
  // edge any more (kAborted).
  Result<Edge> take(const RingHello& expected, Deadline deadline, const AbortSignal& abort,
                    const std::function<bool()>& on_tick = {});
  // The same without waiting, of whichever of the edges has come: which of them it is, and what take() would have
  // returned. Nothing while none has: look again when something that append_polls() named is ready. All of one
  // fragment.
  struct Came {
    std::size_t index;
    Result<Edge> edge;
  };
  std::optional<Came> try_take(std::span<const RingHello> expected);
  // What poll(2) is to watch for the fragment's arrivals, and for hellos on what is parked of it with `peers`.
  void append_polls(FragmentId fragment, const std::vector<IslandId>& peers, std::vector<pollfd>& polls);
  // The attempt has failed here: connections that wait for it, and those that still come, are closed, which tells those
  // who dialled them. Until another one is asked for.
  void give_up(const RingHello& expected);

  // Keeps connections open on which the fragment's next hello is awaited. `surplus` was read beyond the attempt that
  // they ended.
  struct Parked {
    TlsConnection connection;
    Bytes surplus;
  };
  using Kind = ParkedConnections::Kind;
  void park(FragmentId fragment, std::vector<Parked> connections, Kind kind = Kind::kRing);
  // The one connection of that kind that an attempt left parked there, on which nothing has come yet: the attempt may
  // speak first on it. Nothing where there is none, or another one beside it.
  std::optional<TlsConnection> take_resting(FragmentId fragment, const IslandId& peer, Kind kind);
  // Call it now and then while nobody takes: keepalives that come on parked connections are read, and what is closed is
  // closed here too. Never waits.
  void look_at_parked();
  // Closes the fragment's parked connections of everybody else, and of the other kind.
  void keep_parked_of(FragmentId fragment, const std::vector<IslandId>& peers, Kind kind = Kind::kRing);
  // The hub began anew, and rounds and attempts of all fragments may count back: what waits is of no attempt to come.
  // Those that are parked stay.
  void forget_attempts();
  // Closes all connections of a peer that is no longer a member.
  void forget(const IslandId& peer);
  void finish(Deadline deadline);  // RingAllReduce::finish()

 private:
  struct Waiting {
    RingHello hello;
    TlsConnection connection;
    bool was_parked = false;
  };
  struct Refusal {
    Error reason;
    Clock::time_point when;
  };
  struct OfFragment {
    std::map<IslandId, Refusal> refusals = {};  // of the last seconds
    std::pair<OuterStep, Attempt> newest_asked = {};
  };
  using Arrived = std::optional<Result<Edge>>;
  // What take returns, when it need not wait longer. `arrived` counts connections for the message of a timeout.
  Arrived take_arrived(const RingHello& expected, int& arrived);
  bool is_cut(const RingHello& expected, bool parked_closed);
  void drop_outdated(std::vector<Waiting>& dropped) ATOLL_REQUIRES(mutex_);
  bool listen_to_parked(FragmentId fragment, const IslandId& peer);
  void drain_arrivals(FragmentId fragment);
  // Of a fragment below kMaxFragments.
  OfFragment& of(FragmentId fragment) ATOLL_REQUIRES(mutex_) { return fragments_[fragment.value]; }
  const UniqueFd& arrival_of(FragmentId fragment) const { return arrivals_[fragment.value]; }

  // eventfds, one a fragment: a delivery wakes the taker, which also watches its abort signal
  std::array<UniqueFd, kMaxFragments> arrivals_;
  UniqueFd ahead_arrival_;  // likewise for whoever reads padding
  Mutex mutex_;
  std::array<OfFragment, kMaxFragments> fragments_ ATOLL_GUARDED_BY(mutex_);
  std::vector<Waiting> waiting_ ATOLL_GUARDED_BY(mutex_);  // oldest first
  ParkedConnections parked_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace atl
