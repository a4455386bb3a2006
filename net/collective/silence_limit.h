// How long nothing may come over an edge until its peer counts as lost: by what the edge itself is like, no less than
// half of the silence timeout and never more than all of it. A peer that stops on an edge that never paused is missed
// sooner than one on an edge that pauses now and then; a failure detector that adapts to the edge, as phi-accrual is
// (Hayashibara et al. 2004), but bounded, and its answer is a time that can be explained:
//
//   limit = the longer of kOfLongestGap * the longest gap of the last minutes and kOfRoundTrip * the round trip
//
// kOfLongestGap: a gap that ended with a retransmission is three times as long when that one is lost as well, and seven
// times when the next one is too, for the kernel waits twice as long each time. kOfRoundTrip: on an edge without gaps,
// what two lost retransmissions take. The whole timeout holds as long as little is known: of the edge, and of the
// attempt, which begins after minutes in which the peer did something else. How attempts of an edge begin is known when
// some have begun: then what comes first in the attempt is enough, and until it has begun the longest gap of those
// beginnings counts as well, which is remembered for as many attempts as gaps are for timeouts.
//
// What it cannot tell from a death, of a peer that never paused: that its process stands still for half of the timeout
// (its machine swaps); and that all is lost on its link for more than a sixth, which the kernel's back-off may stretch
// to half (silence_simulation_test). Whoever pauses for less, once, has the longer limit from then on. A liar that
// makes gaps gets no more than the timeout.
//
// A silence for most of which this end may have been at fault itself, as its link was gone, is no gap of the peer's: an
// island that was cut off would give each of its neighbours the whole timeout for minutes.
//
// Time counts as it is watched: of a look that comes late, by this process's own sleep, no more than a kLongestLook-th
// of the timeout. Pure: times are passed in. One for each direction of an edge, kept from attempt to attempt
// (peer_silences.h).
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "net/base/deadline.h"

namespace atl {

class SilenceLimit {
 public:
  static constexpr int kOfLongestGap = 5;
  static constexpr int kOfRoundTrip = 8;
  // In a shorter time a busy machine itself makes gaps: no limit is below, but that of a shorter timeout.
  static constexpr std::chrono::milliseconds kShortest{2'000};
  // Of the edge, before less than the timeout will do: so many looks with which something had come, in a timeout.
  static constexpr std::uint64_t kFewestArrivals = 24;
  // Of the attempt, which has begun then: so many, in the time of the longest look.
  static constexpr std::uint64_t kFewestOfAttempt = 4;
  // Of attempts that have begun, before the first arrival of one is enough.
  static constexpr std::uint64_t kFewestBeginnings = 3;
  // A gap is remembered for so many timeouts that the edge was watched, and at most twice as many; one of a beginning
  // for as many attempts.
  static constexpr int kMemory = 20;
  // The longest that a look counts for, as a part of the timeout: the time between two keepalives.
  static constexpr int kLongestLook = 12;

  // An attempt begins to watch the edge; of what came before nothing is said to arrive.
  void begin(std::chrono::milliseconds timeout, Clock::time_point now);
  // Several times between two keepalives. `arrived`: something came since the look before. `at_fault`: this end's link
  // seems to be gone, which nobody else is to be remembered for.
  void look(Clock::time_point now, bool arrived, bool at_fault = false);
  // Instead of a look: what passed until now is no silence of the peer's, and tells nothing.
  void excuse(Clock::time_point now);

  // `rtt`: zero when it is not known.
  Clock::duration limit(Clock::duration rtt) const;
  // Lost, if it is not this end that is at fault.
  bool exceeded(Clock::time_point now, Clock::duration rtt) const;
  // Lost: nothing came for the whole timeout.
  bool exhausted(Clock::time_point now) const { return now - last_arrival_ > timeout_; }
  // Lost: for the limit's time, or, where it may be this end that is at fault, which is asked then alone, for the whole
  // timeout.
  template <class AtFault>
  bool lost(Clock::time_point now, Clock::duration rtt, AtFault may_be_at_fault) const {
    return exhausted(now) || (exceeded(now, rtt) && !may_be_at_fault());
  }
  // Of whom nothing came for half of what is allowed: to be named when somebody else gives up. More than two keepalives
  // were due.
  bool is_suspect(Clock::time_point now, Clock::duration rtt) const;
  Clock::time_point last_arrival() const { return last_arrival_; }

 private:
  Clock::duration longest_look() const { return Clock::duration(timeout_) / kLongestLook; }
  bool is_known() const;
  bool has_begun() const;  // the attempt
  void remember(Clock::duration gap, bool of_beginning);
  void count_beginning();
  Clock::duration silence(Clock::time_point now) const;

  std::chrono::milliseconds timeout_{0};
  Clock::time_point last_look_, last_arrival_;
  Clock::duration silence_{0};   // that was watched, at the last look
  Clock::duration at_fault_{0};  // of that: while this end may have been
  std::uint64_t arrivals_ = 0, arrivals_of_attempt_ = 0;
  Clock::duration watched_{0}, watched_of_attempt_{0};  // until the last arrival
  // The longest of the last kMemory timeouts at most, and of as many before.
  std::array<Clock::duration, 2> longest_{};
  Clock::duration watched_since_turn_{0};
  // The same of the last kMemory beginnings.
  std::array<Clock::duration, 2> longest_of_beginnings_{};
  std::uint64_t beginnings_ = 0;
};

// What is known of one peer: of what comes from it, of what it takes, and of what comes past a ring (direct_reduce.h).
struct PeerSilence {
  SilenceLimit sent, took, contributed;
};

}  // namespace atl
