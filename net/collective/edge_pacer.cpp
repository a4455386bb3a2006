#include "net/collective/edge_pacer.h"

#include <algorithm>

namespace atl {
namespace {

constexpr std::size_t kIntervalsOfRate = 4;
constexpr std::size_t kRatesKept = 10;
constexpr std::size_t kRoundTripsKept = 100;
constexpr double kGrowth = 1.2;  // of an interval, below which the pipe counts as full
constexpr int kIntervalsInVain = 3;
constexpr double kLeastLimit = 64 << 10;  // bytes/s

constexpr double kRaise = 1.08;
constexpr double kHold = 1.03;  // BBR sends some 3 % less than it may: its probes' slow phases are not made up for
constexpr double kDrain = 0.92;
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

}  // namespace

std::optional<double> EdgePacer::observe(const Interval& interval) {
  if (interval.seconds <= 0 || interval.bytes_delivered <= 0 || interval.stalled) return limit_;
  if (interval.rtt_seconds > 0) {
    keep(least_rtts_, interval.rtt_seconds, kRoundTripsKept);
    if (limit_) look_whose_queue_it_is(interval.seconds);
  }
  // What a link delivers while a queue stands before it is no more than its rate, even if the sender had nothing more;
  // less than its rate, if the queue was another's. With nothing under way no queue stands: the round trip is then one
  // of some time ago.
  const bool queued = interval.under_way && gain() < kRaise;
  if (!interval.saturated && !queued) return limit_;
  const double rate = interval.bytes_delivered / interval.seconds;
  if (interval.saturated || !limit_ || rate > std::ranges::max(rates_)) {
    keep(latest_, interval, kIntervalsOfRate);
    keep(rates_, mean_rate(), kRatesKept);
  }
  if (!limit_) look_for_the_top(rate);
  if (queued) in_vain_ = kIntervalsInVain;
  if (limit_ || in_vain_ >= kIntervalsInVain) {
    limit_ = std::max(kLeastLimit, gain() * std::ranges::max(rates_));
  }
  return limit_;
}

void EdgePacer::begin_with(double bytes_per_second) {
  if (limit_ || bytes_per_second <= 0) return;
  rates_ = {bytes_per_second};
  limit_ = std::max(kLeastLimit, kRaise * bytes_per_second);
}

std::optional<double> EdgePacer::link_rate() const {
  return limit_ ? std::optional(std::ranges::max(rates_)) : std::nullopt;
}

// Acknowledgements that were held up come all at once: an interval alone may seem half as fast again as the link.
double EdgePacer::mean_rate() const {
  double bytes = 0, seconds = 0;
  for (const Interval& interval : latest_) {
    bytes += interval.bytes_delivered;
    seconds += interval.seconds;
  }
  return bytes / seconds;
}

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
