#include "net/collective/edge_pacer.h"

#include <algorithm>
#include <utility>

namespace atl {
namespace {

constexpr std::size_t kIntervalsOfRate = 4;
constexpr std::size_t kRatesKept = 10;
constexpr std::size_t kRoundTripsKept = 100;
constexpr double kGrowth = 1.2;  // of an interval, below which the pipe counts as full
constexpr int kIntervalsInVain = 3;
constexpr double kWideOpen = 0.75;        // of a known rate, from which a window that opens tells of the link as well
constexpr double kLeastLimit = 64 << 10;  // bytes/s

constexpr double kHold = 1.03;  // BBR sends some 3 % less than it may: its probes' slow phases are not made up for
constexpr double kDrain = 0.92;
constexpr double kSteepestClimb = 1.25, kSteeper = 1.5;
constexpr double kQueueOfClimb = 0.1;  // s: what a climb may fill before it is seen that the link carries no more
// Of the limit: more does not come through, and of kRaise on a link that carries no more than before, less does.
constexpr double kHeldByLimit = 0.955;
constexpr int kIntervalsOfClimbing = 2;  // what is sent now is acknowledged in the next but one
// A queue is allowed for so long: enough to keep the link busy through the jitter of a busy machine.
constexpr double kLeastQueue = 0.01;
constexpr double kQueueOfRoundTrip = 0.2;
constexpr int kIntervalsOfHolding = 6;
constexpr int kIntervalsOfDraining = 5;

template <class T>
void keep(std::deque<T>& values, T value, std::size_t most) {
  values.push_back(value);
  if (values.size() > most) values.pop_front();
}

double rate_of(const EdgePacer::Interval& interval) { return interval.bytes_delivered / interval.seconds; }

// Acknowledgements that were held up come all at once: an interval alone may seem half as fast again as the link.
double mean_rate(const std::deque<EdgePacer::Interval>& intervals) {
  double bytes = 0, seconds = 0;
  for (const EdgePacer::Interval& interval : intervals) {
    bytes += interval.bytes_delivered;
    seconds += interval.seconds;
  }
  return bytes / seconds;
}

}  // namespace

std::optional<double> EdgePacer::observe(const Interval& interval) {
  if (interval.seconds <= 0) return limit_;
  keep(all_, interval, kIntervalsOfRate);
  if (interval.bytes_delivered <= 0 || interval.stalled) return limit_;
  if (interval.rtt_seconds > 0) {
    keep(least_rtts_, interval.rtt_seconds, kRoundTripsKept);
    if (limit_) look_whose_queue_it_is(interval.seconds);
  }
  // What a link delivers while a queue stands before it is no more than its rate, even if the sender had nothing more;
  // less than its rate, if the queue was another's. With nothing under way no queue stands: the round trip is then one
  // of some time ago.
  const bool queued = interval.under_way && gain() < kRaise;
  unqueued_ = queued ? 0 : unqueued_ + 1;
  if (queued) climb_ = kRaise;
  if (!learns(interval, queued)) return limit_;
  if (!limit_) {
    if (interval.saturated || queued) look_for_the_top(rate_of(interval));
    if (queued) in_vain_ = kIntervalsInVain;
    if (in_vain_ < kIntervalsInVain) return limit_;
  } else if (unqueued_ > 0 && climbs(interval)) {
    return limit_;
  }
  limit_ = std::max(kLeastLimit, gain() * fastest());
  return limit_;
}

// False: it tells nothing.
bool EdgePacer::learns(const Interval& interval, bool queued) {
  const double rate = rate_of(interval), before = std::exchange(rate_before_, rate);
  // What is acknowledged now was sent in the interval before: where that one's sender waited, it is less than the link.
  const bool saturated = std::exchange(saturated_before_, interval.saturated) && interval.saturated;
  // Of new connections, whose windows open: they are held back by neither link nor limit.
  if (limit_ && !queued && rate > kGrowth * before && rate < kWideOpen * fastest()) return false;
  const bool faster = !limit_ || rate > fastest();
  if (saturated || ((interval.saturated || queued) && faster) || held_by_limit(rate)) {
    keep(latest_, saturated ? interval : believable(interval), kIntervalsOfRate);
    keep(rates_, mean_rate(latest_), kRatesKept);
    return true;
  }
  if (!limit_ && all_.size() == kIntervalsOfRate && mean_rate(all_) > fastest()) {
    keep(rates_, mean_rate(all_), kRatesKept);  // whoever waited meanwhile, the link carried so much
    return true;
  }
  return queued;
}

// No more was sent than the limit allows: what arrives beyond it was held up before.
EdgePacer::Interval EdgePacer::believable(Interval interval) const {
  if (limit_) interval.bytes_delivered = std::min(interval.bytes_delivered, *limit_ * interval.seconds);
  return interval;
}

// Saturated or not: with nothing to send it would be less.
bool EdgePacer::held_by_limit(double rate) const { return limit_ && rate > kHeldByLimit * *limit_; }

// What is sent now is acknowledged in the next interval but one, so each climb lasts for two.
bool EdgePacer::climbs(const Interval& interval) {
  if (unqueued_ < kIntervalsOfClimbing) return climb_ > kRaise;
  const bool held = held_by_limit(rate_of(interval));
  const double steepest = 1 + kQueueOfClimb / (kIntervalsOfClimbing * interval.seconds);
  climb_ = held ? std::min({kSteepestClimb, std::max(kRaise, steepest), 1 + kSteeper * (climb_ - 1)}) : kRaise;
  if (!held) return false;
  latest_ = {believable(interval)};  // those before were held by a lower limit
  keep(rates_, mean_rate(latest_), kRatesKept);
  limit_ = std::max(kLeastLimit, climb_ * rates_.back());
  unqueued_ = 0;
  return true;
}

void EdgePacer::begin_with(double bytes_per_second) {
  if (limit_ || bytes_per_second <= 0) return;
  rates_ = {bytes_per_second};
  limit_ = std::max(kLeastLimit, kRaise * bytes_per_second);
}

void EdgePacer::resume() {
  least_rtts_.clear();
  all_.clear();
  rate_before_ = 0;
  saturated_before_ = false;
  climb_ = kRaise;
  unqueued_ = held_ = drained_ = 0;
  if (limit_) limit_ = std::max(kLeastLimit, kRaise * fastest());  // what queue there was is gone
}

std::optional<double> EdgePacer::link_rate() const { return limit_ ? std::optional(fastest()) : std::nullopt; }

double EdgePacer::fastest() const { return rates_.empty() ? 0 : std::ranges::max(rates_); }

void EdgePacer::look_for_the_top(double rate) {
  if (rate > kGrowth * top_) {
    top_ = rate;
    in_vain_ = 0;
  } else {
    ++in_vain_;
  }
}

// A queue of our own shrinks by what we hold back. One that does not is another's: that of the acknowledgements' way,
// which is full in a ring, for they share it with the peer's own data. Held back further we would only starve.
void EdgePacer::look_whose_queue_it_is(double seconds) {
  held_ = gain() < kRaise ? held_ + 1 : 0;
  if (gain() > kDrain) {
    drained_ = 0;
    return;
  }
  if (drained_++ == 0) {
    drained_from_ = least_rtts_.back();
    drained_seconds_ = 0;
    return;
  }
  drained_seconds_ += seconds;
  if (drained_ <= kIntervalsOfDraining) return;
  const double shrunk = drained_from_ - least_rtts_.back();
  if (shrunk < (1 - kDrain) * drained_seconds_ / 2) least_rtts_ = {least_rtts_.back()};
  drained_ = 0;
  held_ = 0;
}

double EdgePacer::gain() const {
  if (least_rtts_.empty()) return kRaise;
  const double least = std::ranges::min(least_rtts_);
  const double queue = least_rtts_.back() - least;
  const double allowed = std::max(kLeastQueue, kQueueOfRoundTrip * least);
  if (queue < allowed) return kRaise;
  return queue < 2 * allowed && held_ <= kIntervalsOfHolding ? kHold : kDrain;
}

}  // namespace atl
