#include "net/collective/silence_limit.h"

#include <algorithm>
#include <utility>

namespace atl {

void SilenceLimit::begin(std::chrono::milliseconds timeout, Clock::time_point now) {
  timeout_ = timeout;
  last_look_ = last_arrival_ = now;
  silence_ = at_fault_ = watched_of_attempt_ = Clock::duration::zero();
  arrivals_of_attempt_ = 0;
}

void SilenceLimit::look(Clock::time_point now, bool arrived, bool at_fault) {
  const Clock::duration before = std::exchange(silence_, silence(now));
  if (at_fault) at_fault_ += silence_ - before;
  last_look_ = now;
  if (!arrived) return;
  const bool begins = !has_begun();
  if (2 * at_fault_ <= silence_) {
    watched_ += silence_;
    watched_of_attempt_ += silence_;
    watched_since_turn_ += silence_;
    if (arrivals_of_attempt_ > 0) remember(silence_, begins);  // until the first comes the peer may have to meet others
  }
  last_arrival_ = now;
  silence_ = at_fault_ = Clock::duration::zero();
  ++arrivals_;
  ++arrivals_of_attempt_;
  if (begins && has_begun()) count_beginning();
}

void SilenceLimit::remember(Clock::duration gap, bool of_beginning) {
  if (watched_since_turn_ > kMemory * timeout_) {
    longest_ = {Clock::duration::zero(), longest_[0]};
    watched_since_turn_ = Clock::duration::zero();
  }
  longest_[0] = std::max(longest_[0], gap);
  if (of_beginning) longest_of_beginnings_[0] = std::max(longest_of_beginnings_[0], gap);
}

void SilenceLimit::count_beginning() {
  if (++beginnings_ % kMemory == 0) longest_of_beginnings_ = {Clock::duration::zero(), longest_of_beginnings_[0]};
}

void SilenceLimit::excuse(Clock::time_point now) {
  last_look_ = last_arrival_ = now;
  silence_ = at_fault_ = Clock::duration::zero();
}

bool SilenceLimit::has_begun() const {
  return arrivals_of_attempt_ >= kFewestOfAttempt && watched_of_attempt_ >= longest_look();
}

bool SilenceLimit::is_known() const {
  const bool attempt_is_known = has_begun() || (arrivals_of_attempt_ > 0 && beginnings_ >= kFewestBeginnings);
  return arrivals_ >= kFewestArrivals && watched_ >= timeout_ && attempt_is_known;
}

Clock::duration SilenceLimit::limit(Clock::duration rtt) const {
  if (!is_known()) return timeout_;
  const Clock::duration least = std::min(timeout_, std::max(timeout_ / 2, kShortest));
  Clock::duration longest = std::max(longest_[0], longest_[1]);
  if (!has_begun()) longest = std::max({longest, longest_of_beginnings_[0], longest_of_beginnings_[1]});
  const Clock::duration of_edge = std::max<Clock::duration>(kOfLongestGap * longest, kOfRoundTrip * rtt);
  return std::clamp<Clock::duration>(of_edge, least, timeout_);
}

// As far as it was watched.
Clock::duration SilenceLimit::silence(Clock::time_point now) const {
  return silence_ + std::min(now - last_look_, longest_look());
}

bool SilenceLimit::exceeded(Clock::time_point now, Clock::duration rtt) const {
  return exhausted(now) || silence(now) > limit(rtt);
}

bool SilenceLimit::is_suspect(Clock::time_point now, Clock::duration rtt) const {
  return silence(now) > limit(rtt) / 2;
}

}  // namespace atl
