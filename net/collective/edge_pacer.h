// How fast an edge may send, so that it fills the link without filling the queues in front of it: a limit for all its
// connections together, which the kernel's congestion control stays below but seldom finds by itself. A connection of
// several whose sender waits for the ring now and then counts as limited by its application, so that BBR (Cardwell et
// al. 2016) never sees that the pipe is full and keeps its start's gain of 2.9: queues overflow, a tenth is sent twice.
//
// The limit is a gain on the fastest rate that was lately acknowledged while there was always more to send. The gain is
// above 1 while the round trip is near its least, and below 1 when a queue has grown (as in TCP Vegas, Brakmo &
// Peterson 1995, but against a least that is forgotten after a while, and at once when holding back has not made the
// queue shorter, since a queue that others keep is not ours to drain). Until the first rate that no longer grows there
// is no limit. An interval in which the way was broken tells nothing of how fast it is and changes nothing: a short
// outage would be followed by a long crawl. Pure; one for each peer that this island sends to, kept from attempt to
// attempt.
#pragma once

#include <cstddef>
#include <deque>
#include <limits>
#include <optional>

namespace atl {

class EdgePacer {
 public:
  // What one interval brought: of some 100 ms and at least a round trip.
  struct Interval {
    double seconds = 0;
    double bytes_delivered = 0;
    bool saturated = false;  // there was always something left to send
    double rtt_seconds = 0;  // smoothed, mean of the connections; 0: not known
    bool under_way = false;  // there was always something that was not acknowledged yet
    bool stalled = false;    // a connection had lost all that was under way, and waited before it sent again
  };

  static constexpr double kShortestInterval = 0.1;  // s

  // The limit from now on, bytes/s of the whole edge; nothing: no limit yet.
  std::optional<double> observe(const Interval& interval);
  std::optional<double> limit() const { return limit_; }
  // What the link carries, bytes/s; nothing: it was never seen full.
  std::optional<double> link_rate() const;
  // Where nothing was learned yet: taken to carry so much, until intervals tell otherwise.
  void begin_with(double bytes_per_second);
  // Before the first interval after a pause, in which nobody knows what became of the link.
  void resume() {
    least_rtts_.clear();
    held_ = drained_ = 0;
  }

 private:
  void look_for_the_top(double rate);
  void look_whose_queue_it_is(double seconds);
  double mean_rate() const;
  double gain() const;

  std::deque<Interval> latest_;    // of those that tell the link's rate
  std::deque<double> rates_;       // the latest means over them, bytes/s
  std::deque<double> least_rtts_;  // the latest, s
  double top_ = 0;                 // while there is no limit: the fastest so far
  int in_vain_ = 0;                // intervals since it grew
  std::optional<double> limit_;
  int held_ = 0;     // intervals in a row with a queue
  int drained_ = 0;  // those in a row in which a queue was to shrink
  double drained_seconds_ = 0;
  double drained_from_ = 0;  // the round trip before, s
};

}  // namespace atl
