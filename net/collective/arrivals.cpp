#include "net/collective/arrivals.h"

#include <algorithm>
#include <utility>

namespace atl {
namespace {

constexpr std::size_t kMostSent = 256;       // some 6 s of looks and receipts of one attempt
constexpr std::size_t kMostSentUntold = 32;  // of a connection whose receiver has told nothing, and perhaps never will
constexpr std::size_t kMostUntimed = 64;
constexpr double kMostBelieved = 2;  // times what was acknowledged in that time, and the round trip
constexpr int kMostUntold = 20;      // intervals

double seconds_between(std::uint32_t from, std::uint32_t to) { return static_cast<std::int32_t>(to - from) * 1e-6; }

}  // namespace

std::uint32_t microseconds_of(Clock::time_point time) {
  const auto since = std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch());
  return static_cast<std::uint32_t>(since.count());
}

void Arrivals::begin() { *this = {}; }

// Several threads look, each at a time of its own.
void Arrivals::sent(int connection, Clock::time_point now, std::uint64_t bytes, bool has_more) {
  Connection& one = connections_[connection];
  if (!one.sent.empty()) {
    now = std::max(now, one.sent.back().at);
    bytes = std::max(bytes, one.sent.back().bytes);
  }
  one.sent.push_back({now, bytes, has_more});
  if (one.sent.size() > (one.latest ? kMostSent : kMostSentUntold)) one.sent.pop_front();
}

void Arrivals::came(int connection, std::uint32_t microseconds, std::uint64_t bytes) {
  const auto found = connections_.find(connection);
  if (found == connections_.end() || found->second.sent.empty()) return;
  Connection& one = found->second;
  const bool is_news =
      !one.latest || (bytes > one.latest->bytes && seconds_between(one.latest->microseconds, microseconds) > 0);
  if (!is_news || bytes > one.sent.back().bytes) return;
  one.latest = Told{microseconds, bytes};
  if (!one.first) one.first = one.latest;
  one.untimed.push_back(*one.latest);
  if (one.untimed.size() > kMostUntimed) one.untimed.pop_front();
}

void Arrivals::forget(int connection) { connections_.erase(connection); }

// Between two looks at which more waited the connection sent evenly, for it is paced.
void Arrivals::time(Connection& connection, Seen& seen) {
  for (const Told& told : std::exchange(connection.untimed, {})) {
    std::deque<Sent>& sent = connection.sent;
    const auto after = std::ranges::find_if(sent, [&](const Sent& one) { return one.bytes >= told.bytes; });
    if (after == sent.begin() || after == sent.end()) continue;
    const auto before = std::prev(after);
    if (before->has_more && after->has_more) {
      const double share =
          static_cast<double>(told.bytes - before->bytes) / static_cast<double>(after->bytes - before->bytes);
      const auto took = std::chrono::duration_cast<Clock::duration>(share * Seconds(after->at - before->at));
      const std::uint32_t delay = told.microseconds - microseconds_of(before->at + took);
      if (!first_delay_) first_delay_ = delay;
      const double seconds = seconds_between(*first_delay_, delay);
      seen.delay_seconds = std::min(seconds, seen.delay_seconds.value_or(seconds));
    }
    sent.erase(sent.begin(), before);
  }
}

Arrivals::Seen Arrivals::look() {
  Seen seen;
  bool of_all = !connections_.empty();
  for (auto& [_, connection] : connections_) {
    time(connection, seen);
    const std::optional<Told>&first = connection.first, &latest = connection.latest;
    // Several steps of the clock that a peer tells may come to none.
    const double seconds = first ? seconds_between(first->microseconds, latest->microseconds) : 0;
    if (seconds > 0) {
      seen.bytes_per_second += static_cast<double>(latest->bytes - first->bytes) / seconds;
    } else {
      of_all = false;
    }
    connection.first = latest;
  }
  if (!of_all) seen.bytes_per_second = 0;
  return seen;
}

// The delay may be told in a clock that stood still meanwhile, as in a machine that was suspended, or that has gone
// faster or slower than this one's for days: a round trip that cannot be begins anew with the one of acknowledgements.
void Arrivals::put_into(EdgePacer::Interval& interval) {
  const Seen seen = look();
  const double rtt = interval.rtt_seconds;
  if (rtt <= 0) return;
  untold_ = seen.delay_seconds ? 0 : untold_ + (interval.saturated ? 1 : 0);
  if (seen.delay_seconds) {
    const double told = rtt_of_first_.value_or(0) + *seen.delay_seconds;
    if (!rtt_of_first_ || told <= 0 || told > kMostBelieved * rtt) rtt_of_first_ = rtt - *seen.delay_seconds;
  }
  if (!rtt_of_first_ || untold_ > kMostUntold) return;
  interval.one_way = true;
  interval.rtt_seconds = seen.delay_seconds ? *rtt_of_first_ + *seen.delay_seconds : 0;
  if (interval.lossy || seen.bytes_per_second <= 0) return;
  interval.bytes_delivered =
      std::min(seen.bytes_per_second * interval.seconds, kMostBelieved * interval.bytes_delivered);
}

}  // namespace atl
