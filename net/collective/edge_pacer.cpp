#include "net/collective/edge_pacer.h"

#include <algorithm>
#include <utility>

namespace atl {
namespace {

constexpr std::size_t kIntervalsOfRate = 4;
constexpr std::size_t kRatesKept = 10;
constexpr std::size_t kRoundTripsKept = 100;
constexpr std::size_t kRoundTripsKeptOfQueue = 2000;  // where one is kept, so that the least is seldom seen again
constexpr double kGrowth = 1.2;                       // of an interval, below which the pipe counts as full
constexpr int kIntervalsInVain = 3;
constexpr double kWideOpen = 0.75;        // of a known rate, from which a window that opens tells of the link as well
constexpr double kLeastLimit = 64 << 10;  // bytes/s
constexpr double kDeepestFall = 0.5;      // from one interval to the next

constexpr double kFirstClimb = 1.12, kSteepestClimb = 1.25, kSteeper = 1.5;
constexpr double kQueueOfClimb = 0.1;    // s: what a climb may fill before it is seen that the link carries no more
constexpr int kIntervalsOfClimbing = 2;  // what is sent now is acknowledged in the next but one
// A raise in vain: what was sent was so much more than comes through, which is no less than before, and the round trip
// gets longer by so much of the time.
constexpr double kRaised = 1.03, kSteady = 0.97, kGrowthOfRtt = 0.01;
constexpr double kLeastOfCruise = 0.96;  // of the rate, below which it is no cruise
constexpr unsigned kMostPatience = 16;
// A queue is allowed for so long: enough to keep the link busy through the jitter of a busy machine.
constexpr double kLeastQueue = 0.01;
constexpr double kQueueOfRoundTrip = 0.2;
constexpr int kIntervalsOfHolding = 6;
constexpr int kIntervalsOfDoubt = 3;
constexpr int kIntervalsOfDraining = 5;

// On a lossy link whose edge knows its own queue: what makes up for BBR's probes, and how soon what the queue is longer
// or shorter than it should be is mended.
constexpr double kAgainstProbes = 1.05;
constexpr double kQueueKept = 0.3;  // of the queue allowed
constexpr double kRoundTripsOfMending = 3;
constexpr double kLeastSecondsOfMending = 0.3;
constexpr double kLeastGain = 0.9, kDraining = 0.99;  // of what keeps a queue as it is: that it shrinks is seen

template <class T>
void keep(std::deque<T>& values, T value, std::size_t most) {
  values.push_back(value);
  while (values.size() > most) values.pop_front();
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

// BBR sends some 5 % less than it may, for its probes' slow phases are not made up for; where it is begun anew before
// it probes (LinkPacing), all of it.
const EdgePacer::Gains& EdgePacer::gains() const {
  static constexpr Gains kOfLossy{.raise = 1.08, .cruise = 1.08, .hold = 1.03, .drain = 0.92, .held = 0.955};
  static constexpr Gains kOfClean{.raise = 1.05, .cruise = 1, .hold = 0.98, .drain = 0.93, .held = 0.97};
  return lossy_ ? kOfLossy : kOfClean;
}

void EdgePacer::begin(Interval& interval) {
  lossy_ = interval.lossy;
  one_way_ = interval.one_way;
  limit_then_ = std::exchange(limit_before_, limit_);
  const double rtt_before = std::exchange(rtt_before_, interval.rtt_seconds);
  const bool knows_growth = rtt_before > 0 && interval.rtt_seconds > 0;
  const double growth = knows_growth ? interval.rtt_seconds - rtt_before : 0;
  rtt_grows_ = growth > kGrowthOfRtt * interval.seconds;
  // Where the round trip gets shorter, the acknowledgements of a longer time come in this one.
  if (!lossy_ && !interval.one_way && interval.saturated) interval.seconds += std::max(0.0, -growth);
}

std::optional<double> EdgePacer::observe(Interval interval) {
  if (interval.seconds <= 0) return limit_;
  begin(interval);
  keep(all_, interval, kIntervalsOfRate);
  if (interval.bytes_delivered <= 0 || interval.stalled) return limit_;
  if (interval.rtt_seconds > 0) {
    keep(least_rtts_, interval.rtt_seconds, keeps_a_queue() ? kRoundTripsKeptOfQueue : kRoundTripsKept);
    if (limit_) look_whose_queue_it_is(interval.seconds);
  }
  // What a link delivers while a queue stands before it is no more than its rate, even if the sender had nothing more;
  // less than its rate, if the queue was another's. With nothing under way no queue stands: the round trip is then one
  // of some time ago.
  const bool queued = interval.under_way && is_queue();
  const bool kept = interval.under_way && keeps_a_queue() && queue_seconds() > kQueueKept * queue_allowed();
  unqueued_ = queued || kept ? 0 : unqueued_ + 1;
  if (queued) climb_ = 0;
  if (queued && interval.one_way && interval.saturated) doubt_guess();
  if (!learns(interval, queued)) return limit_;
  if (!limit_) {
    if (interval.saturated || queued) look_for_the_top(rate_of(interval));
    if (queued) in_vain_ = kIntervalsInVain;
    if (in_vain_ < kIntervalsInVain) return limit_;
  } else if (unqueued_ > 0 && !cruises(interval) && climbs(interval)) {
    return limit_;
  }
  limit_to(gain() * fastest());
  return limit_;
}

// It falls by steps: a packet that leaves at once is paid for at the rate of that moment, and holds its connection back
// for as long as that takes, though the limit rises again at once. A few intervals that tell nothing of the link could
// otherwise make an edge silent for seconds.
void EdgePacer::limit_to(double bytes_per_second) {
  limit_ = std::max({kLeastLimit, bytes_per_second, limit_.value_or(0) * kDeepestFall});
}

// With a queue of its own before it for a while the link has carried what it can.
void EdgePacer::doubt_guess() {
  if (!is_guess_ || held_ < kIntervalsOfDoubt || mean_rate(all_) >= fastest()) return;
  is_guess_ = false;
  rates_ = {mean_rate(all_)};
}

// False: it tells nothing.
bool EdgePacer::learns(const Interval& interval, bool queued) {
  const double rate = rate_of(interval), before = std::exchange(rate_before_, rate);
  // What is acknowledged now was sent in the interval before: where that one's sender waited, it is less than the link.
  const bool saturated = std::exchange(saturated_before_, interval.saturated) && interval.saturated;
  saturated_twice_ = saturated;
  // Of new connections, whose windows open: they are held back by neither link nor limit.
  if (limit_ && !queued && rate > kGrowth * before && rate < kWideOpen * fastest()) return false;
  if (is_guess_ && !lossy_ && saturated && !latest_.empty()) {
    is_guess_ = false;
    rates_.clear();
  }
  const bool faster = !limit_ || rate > fastest();
  if (saturated || ((interval.saturated || queued) && faster) || held_by_limit(rate)) {
    keep(latest_, saturated ? interval : believable(interval), kIntervalsOfRate);
    keep_mean(interval);
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
bool EdgePacer::held_by_limit(double rate) const { return limit_ && rate > gains().held * *limit_; }

// On a link without losses one interval alone may be some percent more than the link, and that is all that a cruise has
// to spare; in a ring that waits there may never be two in a row.
void EdgePacer::keep_mean(const Interval& interval) {
  const bool tells = lossy_ || !interval.saturated || latest_.size() > 1 || rates_.empty();
  if (tells) keep(rates_, mean_rate(latest_), kRatesKept);
}

bool EdgePacer::is_in_vain(const Interval& interval) const {
  const double rate = rate_of(interval);
  return !lossy_ && saturated_twice_ && rtt_grows_ && limit_then_ && *limit_then_ > kRaised * fastest() &&
         rate < gains().held * *limit_then_ && rate > kSteady * fastest();
}

// It does until the time is over, or less comes through than did.
bool EdgePacer::cruises(const Interval& interval) {
  if (cruise_ == 0) return false;
  const bool slower = interval.saturated && rate_of(interval) < kLeastOfCruise * fastest();
  cruise_ = lossy_ || slower ? 0 : cruise_ - 1;
  unqueued_ = 0;
  return true;
}

// What is sent now is acknowledged in the next interval but one, so each climb lasts for two.
bool EdgePacer::climbs(const Interval& interval) {
  if (unqueued_ < kIntervalsOfClimbing) return climb_ > 0;
  if (!held_by_limit(rate_of(interval))) {
    climb_ = 0;
    if (is_in_vain(interval)) {
      patience_ = std::min(kMostPatience, 2 * patience_);
      cruise_ = static_cast<int>(patience_ / 2 + random_() % patience_);
    }
    return false;
  }
  const double steepest = 1 + kQueueOfClimb / (kIntervalsOfClimbing * interval.seconds);
  const double steeper = climb_ > 0 ? 1 + kSteeper * (climb_ - 1) : kFirstClimb;
  climb_ = std::min({kSteepestClimb, std::max(gains().raise, steepest), steeper});
  latest_ = {believable(interval)};  // those before were held by a lower limit
  limit_to(climb_ * mean_rate(latest_));
  keep_mean(interval);
  unqueued_ = 0;
  patience_ = 1;
  return true;
}

void EdgePacer::begin_with(double bytes_per_second) {
  if (limit_ || bytes_per_second <= 0) return;
  rates_ = {bytes_per_second};
  is_guess_ = true;
  limit_to(gains().raise * bytes_per_second);
}

void EdgePacer::resume() {
  least_rtts_.clear();
  all_.clear();
  rate_before_ = rtt_before_ = 0;
  saturated_before_ = false;
  limit_before_.reset();
  climb_ = 0;
  unqueued_ = held_ = drained_ = 0;
  // What queue there was is gone. BBR, which begins anew, sends all that it may, and the first round trips tell the
  // least.
  if (limit_) limit_to((keeps_a_queue() ? 1 : gain()) * fastest());
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
  held_ = is_queue() ? held_ + 1 : 0;
  const double of_steady = keeps_a_queue() ? gain() / kAgainstProbes : gain();
  if (of_steady > (keeps_a_queue() ? kDraining : gains().drain)) {
    drained_ = 0;
    return;
  }
  if (drained_++ == 0) {
    drained_from_ = least_rtts_.back();
    drained_seconds_ = 0;
    return;
  }
  drained_seconds_ += (1 - of_steady) * seconds;
  if (drained_ <= kIntervalsOfDraining || (keeps_a_queue() && drained_seconds_ < queue_allowed())) return;
  const double shrunk = drained_from_ - least_rtts_.back();
  if (shrunk < drained_seconds_ / 2) least_rtts_ = {least_rtts_.back()};
  drained_ = 0;
  held_ = 0;
}

double EdgePacer::queue_seconds() const {
  return least_rtts_.empty() ? 0 : least_rtts_.back() - std::ranges::min(least_rtts_);
}

double EdgePacer::queue_allowed() const {
  return least_rtts_.empty() ? kLeastQueue : std::max(kLeastQueue, kQueueOfRoundTrip * std::ranges::min(least_rtts_));
}

bool EdgePacer::is_queue() const { return queue_seconds() >= queue_allowed(); }

// Its losses are no sign of a queue, and what else shows is the edge's own.
bool EdgePacer::keeps_a_queue() const { return lossy_ && one_way_; }

double EdgePacer::gain_for_the_queue_kept() const {
  const double least = least_rtts_.empty() ? 0 : std::ranges::min(least_rtts_);
  const double seconds = std::max(kLeastSecondsOfMending, kRoundTripsOfMending * least);
  const double lacks = kQueueKept * queue_allowed() - queue_seconds();
  return std::clamp(kAgainstProbes * (1 + lacks / seconds), kLeastGain, gains().raise);
}

double EdgePacer::gain() const {
  if (keeps_a_queue()) return gain_for_the_queue_kept();
  if (!is_queue()) return cruise_ > 0 ? gains().cruise : gains().raise;
  return queue_seconds() < 2 * queue_allowed() && held_ <= kIntervalsOfHolding ? gains().hold : gains().drain;
}

}  // namespace atl
