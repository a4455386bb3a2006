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
constexpr std::chrono::milliseconds kMostOfAHop{1000};

// lost_all: of most.
TcpProgress total(const std::vector<int>& sockets) {
  TcpProgress sum;
  std::size_t lost = 0;
  for (const int socket : sockets) {
    const TcpProgress one = tcp_progress(socket);
    sum.bytes_acknowledged += one.bytes_acknowledged;
    sum.bytes_received += one.bytes_received;
    sum.bytes_queued += one.bytes_queued;
    sum.segments_received += one.segments_received;
    sum.smoothed_rtt = std::max(sum.smoothed_rtt, one.smoothed_rtt);
    lost += one.lost_all ? 1 : 0;
  }
  sum.lost_all = 2 * lost > sockets.size();
  return sum;
}

// Something of the peer's lies in the kernel, which the workers have yet to read.
bool is_something_unread(const std::vector<int>& sockets) {
  std::vector<pollfd> polls;
  polls.reserve(sockets.size());
  for (const int socket : sockets) polls.push_back({socket, POLLIN, 0});
  return ::poll(polls.data(), polls.size(), 0) > 0;
}

}  // namespace

std::chrono::milliseconds keepalive_interval(std::chrono::milliseconds silence_timeout) {
  return std::clamp(silence_timeout / SilenceLimit::kLongestLook, std::chrono::milliseconds(1),
                    kLongestKeepaliveInterval);
}

std::chrono::milliseconds patience_of_a_hop(std::chrono::milliseconds silence_timeout) {
  return std::min(kMostOfAHop, silence_timeout / 3);
}

EdgeMonitor::EdgeMonitor(const AttemptContext& attempt, std::vector<int> outbound,
                         std::chrono::milliseconds silence_timeout, EdgeSilences silences, EdgePacing& pacing,
                         ProgressMeter* meter)
    : attempt_(attempt),
      outbound_(std::move(outbound)),
      silence_timeout_(silence_timeout),
      keepalive_interval_(keepalive_interval(silence_timeout)),
      previous_sent_(silences.previous_sent),
      next_took_(silences.next_took),
      pacing_(pacing),
      meter_(meter) {
  previous_sent_.begin(silence_timeout_, last_look_);
  next_took_.begin(silence_timeout_, last_look_);
}

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
          out_.bytes_acknowledged + attempt_.board.contributions_sent()};
}

AllReduceFailure EdgeMonitor::silent(const IslandId& peer, std::string_view verb, Clock::duration time) const {
  return {{ErrorCode::kTimeout, fmt::format("{} {} nothing for {:.1f} s", peer.value, verb, Seconds(time).count())},
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
  if (previous_sent_.is_suspect(now, in_.smoothed_rtt) && !attempt_.board.all_received()) {
    failure.peer = attempt_.previous;
  } else if (next_took_.is_suspect(now, out_.smoothed_rtt) && !attempt_.board.all_sent()) {
    failure.peer = attempt_.next;
  }
  failure.silent = failure.peer.has_value();
  if (!failure.peer && !attempt_.board.all_received()) failure.peer = attempt_.previous;
  // Of a stall, or of an attempt that is held up, the hub tells by what had come to each whose fault it is: also of one
  // that is silent just then, as one that sends a byte now and then mostly is.
  if (failure.peer == attempt_.previous && !attempt_.board.all_received()) {
    failure.stalled_after = attempt_.board.data_received();
  }
  return failure;
}

void EdgeMonitor::look_at_outbound(Clock::time_point now) {
  const TcpProgress out = total(outbound_);
  next_took_.look(now, out.bytes_queued == 0 || out.bytes_acknowledged != out_.bytes_acknowledged);
  if (out.bytes_written() != out_.bytes_written()) last_spoke_ = now;
  out_ = out;
}

// Where both neighbours are one peer, that nothing comes through to it tells of it.
bool EdgeMonitor::own_link_is_gone() const { return out_.lost_all && attempt_.next != attempt_.previous; }

// That nothing comes.
bool EdgeMonitor::may_be_at_fault() const { return own_link_is_gone() || is_something_unread(inbound_); }

bool EdgeMonitor::previous_is_lost(Clock::time_point now) const {
  return !attempt_.board.all_received() &&
         previous_sent_.lost(now, in_.smoothed_rtt, [this] { return may_be_at_fault(); });
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
  in_ = total(inbound_);
  last_progress_ = last_look_ = Clock::now();
  previous_sent_.begin(silence_timeout_, last_look_);
  next_took_.begin(silence_timeout_, last_look_);
}

// True: it is held back, by the owner's limit.
bool EdgeMonitor::look_at_inbound(Clock::time_point now) {
  const TcpProgress in = total(inbound_);
  const bool held = holds_back(now);
  if (held || attempt_.board.all_received()) {
    previous_sent_.excuse(now);
  } else {
    // What comes out of order or twice tells as much of its sender: on a link that has got slow what was lost comes
    // behind seconds of it.
    const bool arrived = in.bytes_received != in_.bytes_received || in.segments_received != in_.segments_received;
    previous_sent_.look(now, arrived, own_link_is_gone());
  }
  in_ = in;
  return held;
}

std::optional<AllReduceFailure> EdgeMonitor::look(Clock::time_point now) {
  look_at_outbound(now);
  const bool held = look_at_inbound(now);
  const bool all_sent = attempt_.board.all_sent();
  if (previous_is_lost(now)) return silent(attempt_.previous, "sent", now - previous_sent_.last_arrival());
  if (next_took_.exhausted(now) && !all_sent) return silent(attempt_.next, "took", now - next_took_.last_arrival());
  const auto progress = attempt_.board.progress();
  // After a sleep of this machine or process: what came meanwhile the workers have yet to read.
  const bool slept = now - std::exchange(last_look_, now) > silence_timeout_;
  if (progress != progress_ || slept || held) last_progress_ = now;
  progress_ = progress;
  if (now > waits_until() && !attempt_.board.all_received()) return stalled(now);
  if (now - last_spoke_ >= keepalive_interval_ && !all_sent) {
    const auto patience =
        std::chrono::ceil<std::chrono::milliseconds>(waits_until() - now) - patience_of_a_hop(silence_timeout_);
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
