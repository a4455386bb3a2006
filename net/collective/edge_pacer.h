// How fast an edge may send, so that it fills the link without filling the queues in front of it: a limit for all its
// connections together, which the kernel's congestion control stays below but seldom finds by itself. A connection of
// several whose sender waits for the ring now and then counts as limited by its application, so that BBR (Cardwell et
// al. 2016) never sees that the pipe is full and keeps its start's gain of 2.9: queues overflow, a tenth is sent twice.
//
// The limit is a gain on the fastest rate that was lately acknowledged while there was always more to send. The gain is
// above 1 while the round trip is near its least, and below 1 when a queue has grown (as in TCP Vegas, Brakmo &
// Peterson 1995, but against a least that is forgotten after a while, and at once when holding back has not made the
// queue shorter, since a queue that others keep is not ours to drain). Where it is the limit that holds the edge back,
// so that all that it allows comes through and no queue grows, it climbs every two round trips, each time more steeply,
// up to a quarter as BBR's probes: what was learned while the ring waited may be a third of the link. Until the first
// rate that no longer grows there is no limit. An interval in which the way was broken tells nothing of how fast it is
// and changes nothing: a short outage would be followed by a long crawl. Nor does one of new connections, whose windows
// open.
//
// A queue of one end delays the acknowledgements of the other, which then sees its own rate fall and a queue that it
// cannot shorten: of two ends alike, the one that overfills its link a little starves the other. So on a link without
// losses, where all that the limit allows is sent, an edge that was raised in vain cruises at what the link carries
// before it is raised again: for a number of intervals that is longer each time, and random, lest both ends raise at
// once, when neither learns anything. Where the receiver tells when data had come (net/collective/arrivals.h) a queue
// is the edge's own, and so is a rate, whatever the acknowledgements meet. On a link with losses the gain then follows
// the queue, in proportion to what it is longer or shorter than a small one, that is kept so that the link is never
// idle: held and drained by steps it swings between too long and none.
//
// Not thread-safe; one for each peer that this island sends to, kept from attempt to attempt.
#pragma once

#include <cstddef>
#include <deque>
#include <limits>
#include <optional>
#include <random>

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
    bool lossy = true;       // packets are lost, or fq paces: of the limit is sent what BBR sends, not all
    bool one_way = false;    // all but a constant of rtt_seconds is the data's way; mostly the rate is the data's, too
  };

  static constexpr double kShortestInterval = 0.1;  // s

  explicit EdgePacer(unsigned seed = std::random_device{}()) : random_(seed) {}

  // The limit from now on, bytes/s of the whole edge; nothing: no limit yet.
  std::optional<double> observe(Interval interval);
  std::optional<double> limit() const { return limit_; }
  // What the link carries, bytes/s; nothing: it was never seen full.
  std::optional<double> link_rate() const;
  double fastest() const;  // that was seen lately, bytes/s, full or not; 0: nothing
  bool is_queue() const;   // one stands, by the latest round trip
  // Where nothing was learned yet: taken to carry so much, until intervals tell otherwise.
  void begin_with(double bytes_per_second);
  // Before the first interval after a pause, in which nobody knows what became of the link.
  void resume();

 private:
  // Of the limit over what the link carries.
  struct Gains {
    double raise;   // while no queue stands
    double cruise;  // after that was in vain
    double hold;    // while one stands
    double drain;   // while a long one does
    // Of the limit: more does not come through, and of `raise` on a link that carries no more than before, less does.
    double held;
  };

  void begin(Interval& interval);
  void limit_to(double bytes_per_second);
  void doubt_guess();
  bool learns(const Interval& interval, bool queued);
  void look_for_the_top(double rate);
  Interval believable(Interval interval) const;
  bool held_by_limit(double rate) const;
  bool climbs(const Interval& interval);
  bool cruises(const Interval& interval);
  bool is_in_vain(const Interval& interval) const;
  void keep_mean(const Interval& interval);
  void look_whose_queue_it_is(double seconds);
  const Gains& gains() const;
  double queue_seconds() const;
  double queue_allowed() const;
  double gain() const;
  bool keeps_a_queue() const;
  double gain_for_the_queue_kept() const;

  std::deque<Interval> latest_;    // of those that tell the link's rate
  std::deque<Interval> all_;       // the latest of all
  std::deque<double> rates_;       // the latest means over them, bytes/s
  std::deque<double> least_rtts_;  // the latest, s
  bool saturated_before_ = false;
  bool saturated_twice_ = false;  // in this one as well
  double rate_before_ = 0;        // of the interval before, bytes/s
  double rtt_before_ = 0;         // s
  bool rtt_grows_ = false;
  bool lossy_ = true;
  bool one_way_ = false;
  double top_ = 0;         // while there is no limit: the fastest so far
  int in_vain_ = 0;        // intervals since it grew
  bool is_guess_ = false;  // rates_ is what it began with
  std::optional<double> limit_;
  std::optional<double> limit_before_, limit_then_;  // in the interval that ends, and in the one before
  double climb_ = 0;                                 // the gain of the last climb; 0: it does not climb
  int cruise_ = 0;                                   // intervals until it is raised again
  unsigned patience_ = 1;                            // about as many, the last time
  std::minstd_rand random_;
  int unqueued_ = 0;            // intervals in a row without a queue, since the last climb
  int held_ = 0;                // intervals in a row with a queue
  int drained_ = 0;             // those in a row in which a queue was to shrink
  double drained_seconds_ = 0;  // by so much a queue of its own would have shrunk since
  double drained_from_ = 0;     // the round trip before, s
};

}  // namespace atl
