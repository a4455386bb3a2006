#include "net/collective/arrivals.h"

#include <algorithm>
#include <utility>

namespace atl {
namespace {

constexpr std::size_t kMostSent = 256;  // some 6 s of looks and receipts
constexpr std::size_t kMostUntimed = 64;

double seconds_between(std::uint32_t from, std::uint32_t to) { return static_cast<std::int32_t>(to - from) * 1e-6; }

}  // namespace

std::uint32_t microseconds_of(Clock::time_point time) {
  const auto since = std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch());
  return static_cast<std::uint32_t>(since.count());
}

void Arrivals::begin() {
  connections_.clear();
  first_delay_.reset();
}

void Arrivals::sent(int connection, Clock::time_point now, std::uint64_t bytes, bool has_more) {
  std::deque<Count>& sent = connections_[connection].sent;
  sent.push_back({microseconds_of(now), bytes, has_more});
  if (sent.size() > kMostSent) sent.pop_front();
}

void Arrivals::came(int connection, std::uint32_t microseconds, std::uint64_t bytes) {
  const auto found = connections_.find(connection);
  if (found == connections_.end() || found->second.sent.empty()) return;
  Connection& one = found->second;
  const bool is_news =
      !one.latest || (bytes > one.latest->bytes && seconds_between(one.latest->microseconds, microseconds) > 0);
  if (!is_news || bytes > one.sent.back().bytes) return;
  one.latest = Count{microseconds, bytes};
  if (!one.first) one.first = one.latest;
  one.untimed.push_back(*one.latest);
  if (one.untimed.size() > kMostUntimed) one.untimed.pop_front();
}

void Arrivals::forget(int connection) { connections_.erase(connection); }

// Between two looks at which more waited the connection sent evenly, for it is paced.
void Arrivals::time(Connection& connection, Seen& seen) {
  for (const Count& told : std::exchange(connection.untimed, {})) {
    std::deque<Count>& sent = connection.sent;
    const auto after = std::ranges::find_if(sent, [&](const Count& count) { return count.bytes >= told.bytes; });
    if (after == sent.begin() || after == sent.end()) continue;
    const auto before = std::prev(after);
    if (before->has_more && after->has_more) {
      const double share =
          static_cast<double>(told.bytes - before->bytes) / static_cast<double>(after->bytes - before->bytes);
      const double took = share * seconds_between(before->microseconds, after->microseconds);
      const std::uint32_t left = before->microseconds + static_cast<std::uint32_t>(took * 1e6);
      const std::uint32_t delay = told.microseconds - left;
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
    if (connection.first && connection.latest->bytes > connection.first->bytes) {
      seen.bytes_per_second += static_cast<double>(connection.latest->bytes - connection.first->bytes) /
                               seconds_between(connection.first->microseconds, connection.latest->microseconds);
    } else {
      of_all = false;
    }
    connection.first = connection.latest;
  }
  if (!of_all) seen.bytes_per_second = 0;
  return seen;
}

}  // namespace atl
