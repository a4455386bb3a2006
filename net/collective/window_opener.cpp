#include "net/collective/window_opener.h"

#include <algorithm>
#include <utility>

#include "net/base/link_window.h"
#include "net/transport/socket.h"

namespace atl {
namespace {

constexpr int kTurnsOfOne = 16;  // records of each connection, before the next one's
// An attempt that begins meanwhile says its hellos behind what waits in the sockets: of so much time's, in all.
constexpr double kWaitsSeconds = 0.06;
constexpr double kLeastWaits = 16 << 10, kMostWaits = 128 << 10;  // bytes, of each connection
// As BBR finds that the pipe is full: no more than this in so many intervals, of a round trip at least.
constexpr double kGrowthOfStart = 1.25;
constexpr int kIntervalsWithoutGrowth = 3;
// What a round trip is longer by than the least when a queue stands.
constexpr double kQueueOfRtt = 0.2;
constexpr Seconds kLeastQueueSeen{0.01};
// One interval's rate may be more than the link's, for acknowledgements that were held up come all at once.
constexpr double kOfOneInterval = 0.95;
// Windows that open still tell of the round trip before; where they are small yet, BBR opens them faster than a limit
// would climb.
constexpr double kOfWindowsThatOpen = 1.3;
constexpr double kSmallWindows = 4 << 20;  // bytes, of a link's together
// Nor is it far less than what came through before, whatever the acknowledgements' way holds up.
constexpr double kOfFastest = 0.6;

ByteView padding_record() {
  static const Bytes record = ring_padding(kMaxRingPaddingBytes);
  return record;
}

std::vector<int> sockets_of_dialled(const std::vector<DialledAhead>& connections) {
  std::vector<int> sockets;
  for (const DialledAhead& one : connections) sockets.push_back(one.connection.fd());
  return sockets;
}

// What a link carries that delivers so much while a queue grows or shrinks, by which the round trip gets longer or
// shorter. Both ends open windows at the same time: half of what grows is before the acknowledgements' way, and holds
// them up; of one that shrinks all may be.
double link_rate_seen(double rate, Seconds seconds, Seconds growth) {
  if (growth <= Seconds::zero()) return rate * (seconds / (seconds - growth));
  return rate * (1 + growth / (2 * seconds));
}

}  // namespace

WindowOpener::WindowOpener(std::vector<DialledAhead> connections, LinkPacing& link, const UploadShare& upload,
                           std::uint64_t bytes_to_each)
    : link_(link), upload_(upload), until_(Clock::now() + kLongest), looked_(Clock::now()), since_(looked_) {
  const std::optional<double> rate = link.link_rate();
  for (const DialledAhead& one : connections) left_[one.end.peer] = 0;
  const double share = rate.value_or(0) / static_cast<double>(left_.size());  // in an exchange all have one link
  for (const DialledAhead& one : connections) {
    const double rtt = least_rtt(one.connection.fd()).count();
    const double twice = 2 * bytes_under_way(share, rtt, false);
    const std::uint64_t most = rate && rtt > 0 ? static_cast<std::uint64_t>(twice) : bytes_to_each;
    left_[one.end.peer] = std::max(left_[one.end.peer], std::min(most, bytes_to_each));
  }
  if (rate) pacing_.emplace(link, sockets_of_dialled(connections), upload_);
  for (DialledAhead& one : connections) connections_.push_back({std::move(one)});
  limit_what_waits(rate.value_or(0));
}

void WindowOpener::limit_what_waits(double link_bytes_per_second) {
  const double share = link_bytes_per_second / static_cast<double>(connections_.size());
  waits_ = static_cast<std::uint64_t>(std::clamp(share * kWaitsSeconds, kLeastWaits, kMostWaits));
  for (const One& one : connections_) limit_unsent(one.dialled.connection.fd(), static_cast<int>(waits_));
}

// True: nothing of it waits here, and little in its socket.
bool WindowOpener::flush(One& one) {
  TlsConnection& connection = one.dialled.connection;
  one.broken = one.broken || !connection.try_flush().ok();
  return !one.broken && !connection.has_unsent() && tcp_progress(connection.fd()).bytes_unsent < waits_;
}

void WindowOpener::send(One& one) {
  std::uint64_t& left = left_[one.dialled.end.peer];
  for (int turn = 0; turn < kTurnsOfOne && flush(one); ++turn) {
    if (left < padding_record().size()) {
      left = 0;
      return;
    }
    // What the connection gathers holds all of it, so that none is ever sent in part.
    const auto written = one.dialled.connection.try_write(padding_record(), /*more_follows=*/true);
    one.broken = !written.ok();
    if (!written.ok()) return;
    left -= *written;
  }
}

bool WindowOpener::is_under_way() const {
  return std::ranges::any_of(connections_, [](const One& one) {
    const TcpProgress progress = tcp_progress(one.dialled.connection.fd());
    return !one.broken && progress.bytes_queued > progress.bytes_unsent;
  });
}

// What is under way yet may tell what the link carries.
bool WindowOpener::is_done(Clock::time_point now) const {
  if (now >= until_ || upload_.most_bytes_per_second()) return true;
  const auto waits = [](const One& one) { return !one.broken && one.dialled.connection.has_unsent(); };
  return std::ranges::all_of(left_, [](const auto& left) { return left.second == 0; }) &&
         std::ranges::none_of(connections_, waits) && (pacing_ || is_seen_full_ || !is_under_way());
}

// With a queue before it, a link delivers what it carries.
void WindowOpener::look(Clock::time_point now) {
  if (pacing_) {
    pacing_->look(now);
    return limit_what_waits(link_.link_rate().value_or(0));
  }
  std::uint64_t delivered = 0;
  Seconds rtt{}, queue{};
  for (const One& one : connections_) {
    const TcpProgress progress = tcp_progress(one.dialled.connection.fd());
    const Seconds least = least_rtt(one.dialled.connection.fd());
    delivered += progress.bytes_delivered;
    rtt = std::max(rtt, Seconds(progress.smoothed_rtt));
    queue = std::max(queue, Seconds(progress.smoothed_rtt) - std::max(kLeastQueueSeen, kQueueOfRtt * least) - least);
  }
  const Seconds seconds = now - since_;
  if (seconds < std::max(Seconds(EdgePacer::kShortestInterval), rtt)) return;
  const double rate = static_cast<double>(delivered - std::min(delivered, delivered_)) / seconds.count();
  const bool queued = queue > Seconds::zero() && is_under_way();
  const bool grows = rate > kGrowthOfStart * fastest_;
  in_vain_ = grows ? 0 : in_vain_ + 1;
  fastest_ = std::max(fastest_, rate);
  limit_what_waits(fastest_);
  const Seconds rtt_before = std::exchange(rtt_, rtt);
  const Seconds growth = rtt_before > Seconds::zero() ? rtt - rtt_before : Seconds::zero();
  if (queued) {
    link_rate_ = std::max(kOfOneInterval * link_rate_seen(rate, seconds, growth), kOfFastest * fastest_);
  } else if (grows) {
    link_rate_ = 0;
  }
  // Where more comes through each time the round trip is long for another reason: that of connections just made may
  // hold what their ends were busy with.
  is_seen_full_ = (queued && queued_ && !grows) || in_vain_ >= kIntervalsWithoutGrowth;
  since_ = now;
  delivered_ = delivered;
  queued_ = queued;
  if (!is_seen_full_) return;
  for (auto& [peer, left] : left_) left = 0;
}

void WindowOpener::tell_link() {
  // Of an exchange this is but a part of what the pacer holds together.
  if (connections_.front().dialled.end.role == RingRole::kExchange) return;
  if (std::ranges::any_of(left_, [](const auto& left) { return left.second > 0; })) return;
  if (link_rate_ > 0) {
    link_.begin_with(link_rate_);
  } else if (fastest_ * rtt_.count() > kSmallWindows) {
    // No queue was seen, but windows so far open would overflow most links: the pacer climbs from what came through.
    link_.begin_with(kOfWindowsThatOpen * fastest_);
  }
}

bool WindowOpener::turn(Clock::time_point now, const AbortSignal* abort) {
  if (now - looked_ >= EdgePacing::kLookEvery) {
    looked_ = now;
    look(now);
  }
  for (One& one : connections_) {
    if (abort != nullptr && abort->raised()) break;
    if (!one.broken) send(one);
  }
  if (!is_done(now)) return true;
  if (!pacing_) tell_link();
  return false;
}

void WindowOpener::append_polls(std::vector<pollfd>& polls) const {
  for (const One& one : connections_) {
    const auto left = left_.find(one.dialled.end.peer);
    const bool sends = !one.broken && (left->second > 0 || one.dialled.connection.has_unsent());
    if (sends) polls.push_back({one.dialled.connection.fd(), POLLOUT, 0});
  }
}

std::vector<DialledAhead> WindowOpener::release() {
  pacing_.reset();
  std::vector<DialledAhead> standing;
  for (One& one : connections_) {
    if (!one.broken) standing.push_back(std::move(one.dialled));
  }
  connections_.clear();
  return standing;
}

}  // namespace atl
