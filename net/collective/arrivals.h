// When what one link's connections sent had come, as the receiver tells by receipts (net/wire/ring_frame.h): at what
// rate it comes, and how long it was under way one way. A round trip also holds the queue of the way back, which the
// acknowledgements share with what others send there, and when that queue grows or shrinks acknowledgements come slower
// or faster than the data did (as in LEDBAT, RFC 6817, the clocks need not agree: only differences count).
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "net/base/deadline.h"
#include "net/collective/edge_pacer.h"

namespace atl {

std::uint32_t microseconds_of(Clock::time_point time);  // modulo 2^32

class Arrivals {
 public:
  struct Seen {
    // At which data came, of all connections together; 0: not known of each of them.
    double bytes_per_second = 0;
    // From when it was sent to when it had come, less that of the first that was ever told: of the connection on which
    // it is least, for on the others something lost may be waited for.
    std::optional<double> delay_seconds;
  };

  // All that was before is forgotten: the receiver may have another clock now.
  void begin();
  // `bytes` of a connection were sent by now, each counted once; `has_more`: and more waits.
  void sent(int connection, Clock::time_point now, std::uint64_t bytes, bool has_more);
  // The receiver's word, of which nothing is believed that was not sent.
  void came(int connection, std::uint32_t microseconds, std::uint64_t bytes);
  void forget(int connection);
  // Since the last look.
  Seen look();
  // The same, in place of what acknowledgements say of the time since the last; on a link with losses the delay alone,
  // for what came out of order is told of only when it is in order. Where the peer tells nothing, or what cannot be,
  // they are believed.
  void put_into(EdgePacer::Interval& interval);

 private:
  struct Sent {
    Clock::time_point at;
    std::uint64_t bytes = 0;
    bool has_more = false;
  };
  struct Told {
    std::uint32_t microseconds = 0;
    std::uint64_t bytes = 0;
  };
  struct Connection {
    std::deque<Sent> sent;
    std::deque<Told> untimed;           // not looked up in `sent` yet
    std::optional<Told> first, latest;  // at the last look and since
  };
  void time(Connection& connection, Seen& seen);

  std::map<int, Connection> connections_;
  std::optional<std::uint32_t> first_delay_;  // microseconds between two clocks
  std::optional<double> rtt_of_first_;        // s: the round trip when the first delay was told
  int untold_ = 0;                            // saturated intervals since a delay was told
};

}  // namespace atl
