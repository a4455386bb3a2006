// Whose HTTPS connection is served, when there are fewer places than connections: pure bookkeeping, no threads, no
// clock. A place costs a thread and a chunk of the state in memory, so there are few; a connection without one waits
// for a while. One member has a few at most, and where others wait, one that has several gives one back.
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <optional>
#include <vector>

#include "net/base/deadline.h"
#include "net/base/id.h"
#include "net/transport/connection_limits.h"

namespace atl {

struct ServingSizes {
  std::size_t places = 16;  // a thread and up to 16 MiB each
  // A fetcher has two transfers of a source under way, beside them a probe of the link and a node check.
  std::size_t places_of_member = 4;
  std::size_t waiting = 64;
  std::size_t waiting_of_member = 8;
  std::chrono::milliseconds patience{10'000};  // of who waits: a fetcher's own is no longer
  // Between two requests, before a place is taken away for another: checking a chunk takes a fraction of it.
  std::chrono::milliseconds idle_grace{1'000};
  // How long one waits before a place is taken, in the middle of its work, from a member that has two more.
  std::chrono::milliseconds fair_after{3'000};
};

class ServingTurns {
 public:
  struct Change {
    std::vector<ConnectionId> begin;  // have a place from now on
    std::vector<ConnectionId> end;    // forgotten already: to be closed
  };

  explicit ServingTurns(const ServingSizes& sizes) : sizes_(sizes) {}

  // A connection that wants to be served: it begins at once, waits, or ends.
  Change ask(ConnectionId id, const IslandId& member, Clock::time_point now);
  // It was served to its end, or closed. No matter when it has none here.
  Change ended(ConnectionId id, Clock::time_point now);
  Change at(Clock::time_point now);  // what time alone has brought; to be asked now and then while any waits
  // Of one that is served: between two requests, or not.
  void set_idle(ConnectionId id, Clock::time_point since);
  void set_busy(ConnectionId id);

  std::size_t served() const { return served_.size(); }
  std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Served {
    ConnectionId id = 0;
    IslandId member;
    std::optional<Clock::time_point> idle_since = {};
  };
  struct Waiting {
    ConnectionId id = 0;
    IslandId member;
    Clock::time_point since;
  };
  using Place = std::list<Served>::iterator;

  std::size_t places_of(const IslandId& member) const;
  Place idle_place(Clock::time_point now, const IslandId* of);
  Place unfair_place(const Waiting& waiting, Clock::time_point now);
  // Where it can be served: true, after a place was taken away in its favour if need be.
  bool make_place(const Waiting& waiting, Clock::time_point now, Change& change);
  void refuse_one(Change& change);
  void settle(Clock::time_point now, Change& change);

  const ServingSizes sizes_;
  std::list<Served> served_;    // in the order in which they began
  std::list<Waiting> waiting_;  // in the order in which they came
};

}  // namespace atl
