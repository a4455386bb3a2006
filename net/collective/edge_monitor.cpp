#include "net/collective/edge_monitor.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "net/transport/socket.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kLongestKeepaliveInterval{1000};

TcpProgress total(const std::vector<int>& sockets) {
  TcpProgress sum;
  for (const int socket : sockets) {
    const TcpProgress one = tcp_progress(socket);
    sum.bytes_acknowledged += one.bytes_acknowledged;
    sum.bytes_received += one.bytes_received;
    sum.bytes_queued += one.bytes_queued;
  }
  return sum;
}

}  // namespace

std::chrono::milliseconds keepalive_interval(std::chrono::milliseconds silence_timeout) {
  return std::min(kLongestKeepaliveInterval, silence_timeout / 3);
}

EdgeMonitor::EdgeMonitor(const AttemptContext& attempt, std::vector<int> outbound,
                         std::chrono::milliseconds silence_timeout, EdgePacing& pacing, ProgressMeter* meter)
    : attempt_(attempt),
      outbound_(std::move(outbound)),
      silence_timeout_(silence_timeout),
      keepalive_interval_(keepalive_interval(silence_timeout)),
      pacing_(pacing),
      meter_(meter) {}

std::optional<double> EdgeMonitor::of_a_socket(std::optional<double> rate) const {
  return rate ? std::optional(*rate / static_cast<double>(std::max<std::size_t>(1, inbound_.size()))) : std::nullopt;
}

// The owner's word may have changed.
void EdgeMonitor::fit_receive_buffers() {
  if (attempt_.download == nullptr) return;
  const std::optional<double> allowed = attempt_.download->allowed();
  if (allowed == std::exchange(received_at_most_, allowed)) return;
  for (const int socket : inbound_) limit_receiving(socket, of_a_socket(allowed));
}

// What waits here by the owner's limit is no silence of the peer's.
bool EdgeMonitor::holds_back(Clock::time_point now) const {
  return attempt_.download != nullptr && attempt_.download->may_read_at(DownloadPace::Use::kRing, now) > now;
}

ProgressMeter::Counts EdgeMonitor::counts() const {
  return {attempt_.board.data_received(), attempt_.board.contributions(),
          acknowledged_ + attempt_.board.contributions_sent()};
}

AllReduceFailure EdgeMonitor::silent(const IslandId& peer, std::string_view verb) const {
  const Seconds allowed = silence_timeout_;
  return {{ErrorCode::kTimeout, fmt::format("{} {} nothing for {:.1f} s", peer.value, verb, allowed.count())},
          peer,
          {},
          /*silent=*/true};
}

Clock::time_point EdgeMonitor::waits_until() const {
  const auto by_itself = last_progress_ + kStallTimeouts * silence_timeout_;
  const auto at_most = last_progress_ + kLongestStall * silence_timeout_;
  return std::clamp(attempt_.board.vouched_until(), by_itself, at_most);
}

AllReduceFailure EdgeMonitor::stalled(Clock::time_point now) const {
  return {{ErrorCode::kTimeout, fmt::format("{} sends keepalives but no data for {:.1f} s", attempt_.previous.value,
                                            Seconds(now - last_progress_).count())},
          attempt_.previous,
          {},
          /*silent=*/false,
          attempt_.board.data_received()};
}

// On a dead edge one end's timeout ends the attempt for both: the other says what it saw until then.
AllReduceFailure EdgeMonitor::aborted(std::string reason, Clock::time_point now) const {
  AllReduceFailure failure{{ErrorCode::kAborted, std::move(reason)}, std::nullopt};
  const auto long_enough = silence_timeout_ / 2;  // more than one keepalive was due
  if (now - last_received_ > long_enough && !attempt_.board.all_received()) {
    failure.peer = attempt_.previous;
  } else if (now - last_taken_ > long_enough && !attempt_.board.all_sent()) {
    failure.peer = attempt_.next;
  }
  failure.silent = failure.peer.has_value();
  // In a stall too the first whose patience ends speaks for all.
  const bool nearly_stalled = waits_until() - now < kStallTimeouts * silence_timeout_ / 2;
  if (!failure.peer && nearly_stalled && !attempt_.board.all_received()) {
    failure.peer = attempt_.previous;
    failure.stalled_after = attempt_.board.data_received();
  }
  return failure;
}

void EdgeMonitor::look_at_outbound(Clock::time_point now) {
  const TcpProgress out = total(outbound_);
  if (out.bytes_queued == 0 || out.bytes_acknowledged != acknowledged_) last_taken_ = now;
  if (out.bytes_written() != spoken_) last_spoke_ = now;
  acknowledged_ = out.bytes_acknowledged;
  spoken_ = out.bytes_written();
}

bool EdgeMonitor::look_ahead() {
  const auto now = Clock::now();
  look_at_outbound(now);
  // How long this island waits yet is for the previous one's hello to tell, and nothing to build on.
  if (now - last_spoke_ >= keepalive_interval_) attempt_.board.ask_for_keepalive(std::chrono::milliseconds(0));
  pacing_.look(now);
  return !attempt_.board.failure();
}

void EdgeMonitor::watch_inbound(std::vector<int> sockets) {
  inbound_ = std::move(sockets);
  if (attempt_.download != nullptr) {
    received_at_most_ = attempt_.download->allowed();
    for (const int socket : inbound_) limit_receiving(socket, of_a_socket(received_at_most_));
  }
  last_received_ = last_taken_ = last_progress_ = last_look_ = Clock::now();
}

std::optional<AllReduceFailure> EdgeMonitor::look(Clock::time_point now) {
  look_at_outbound(now);
  const std::uint64_t received = total(inbound_).bytes_received;
  const bool held = holds_back(now);
  if (received != received_ || held) last_received_ = now;
  received_ = received;
  const bool all_sent = attempt_.board.all_sent();
  if (now - last_received_ > silence_timeout_ && !attempt_.board.all_received()) {
    return silent(attempt_.previous, "sent");
  }
  if (now - last_taken_ > silence_timeout_ && !all_sent) return silent(attempt_.next, "took");
  const auto progress = attempt_.board.progress();
  // After a sleep of this machine or process: what came meanwhile the workers have yet to read.
  const bool slept = now - std::exchange(last_look_, now) > silence_timeout_;
  if (progress != progress_ || slept || held) last_progress_ = now;
  progress_ = progress;
  if (now > waits_until() && !attempt_.board.all_received()) return stalled(now);
  if (now - last_spoke_ >= keepalive_interval_ && !all_sent) {
    const auto patience = std::chrono::ceil<std::chrono::milliseconds>(waits_until() - now) - keepalive_interval_;
    attempt_.board.ask_for_keepalive(std::max(patience, std::chrono::milliseconds(0)));
  }
  return std::nullopt;
}

void EdgeMonitor::run(const AbortSignal& abort) {
  std::array<pollfd, 2> watched{pollfd{abort.fd(), POLLIN, 0}, pollfd{attempt_.board.ended_fd(), POLLIN, 0}};
  const auto interval =
      std::min(std::max(keepalive_interval_ / 2, std::chrono::milliseconds(1)), EdgePacing::kLookEvery);
  while (!attempt_.board.ended()) {
    // The timeout may end late, by a machine that slept or a process that was stopped: what came meanwhile is counted
    // before anybody is blamed.
    const auto now = Clock::now();
    auto failure = look(now);
    if (abort.raised()) return attempt_.board.fail(aborted(abort.reason(), now));
    if (failure) return attempt_.board.fail(std::move(*failure));
    pacing_.look(now);
    fit_receive_buffers();
    if (meter_ != nullptr) meter_->look(counts(), now);
    (void)::poll(watched.data(), watched.size(), static_cast<int>(interval.count()));
  }
  if (meter_ != nullptr && !attempt_.board.failure()) meter_->finish(counts(), Clock::now());
}

}  // namespace atl
