#include "net/collective/edge_pacing.h"

#include <algorithm>

namespace atl {
namespace {

constexpr std::chrono::seconds kBbrProbesAfter{8};  // less than its 10, for the time between two looks
constexpr std::chrono::milliseconds kStagger{200};

}  // namespace

EdgePacing::EdgePacing(EdgePacer& pacer, std::vector<int> sockets, std::optional<double> most)
    : pacer_(pacer),
      sockets_(std::move(sockets)),
      most_(most),
      paces_(!sockets_.empty() && (most_ || !leads_to_this_machine(sockets_.front()))),
      since_(Clock::now()) {
  if (!paces_) return;
  // Of different ages, so that they do not all begin anew at once.
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    restarted_.push_back(since_ - kBbrProbesAfter + kStagger * static_cast<int>(i));
  }
  pacer_.resume();
  apply();
  before_ = read();
}

// Saturated: at most connections of the edge the kernel has more to send. A few may be between two frames.
EdgePacing::Reading EdgePacing::read() const {
  Reading reading;
  std::size_t with_more = 0;
  for (const int socket : sockets_) {
    const TcpProgress progress = tcp_progress(socket);
    reading.bytes_delivered += progress.bytes_delivered;
    reading.rtt_seconds += Seconds(progress.smoothed_rtt).count() / static_cast<double>(sockets_.size());
    with_more += progress.bytes_unsent > 0 ? 1 : 0;
    reading.under_way = reading.under_way || progress.bytes_queued > progress.bytes_unsent;
    reading.stalled = reading.stalled || progress.lost_all;
  }
  reading.saturated = 2 * with_more > sockets_.size();
  return reading;
}

void EdgePacing::apply() const {
  std::optional<double> limit = pacer_.limit();
  if (most_) limit = std::min(*most_, limit.value_or(*most_));
  for (const int socket : sockets_) {
    limit_pacing(socket, limit ? std::optional(*limit / static_cast<double>(sockets_.size())) : std::nullopt);
  }
}

// Every 10 s BBR empties a connection for 200 ms to see the least round trip again, and as the connections of a ring
// are of one age, all its edges stand still at once: 5 % of the time. The pacer keeps the queues short, so that the
// kernel's own record of the least round trip is good; begun anew before the 10 s are over, BBR takes it from there.
void EdgePacing::spare_bbr_its_probes(Clock::time_point now) {
  if (!pacer_.limit()) return;
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    if (now - restarted_[i] < kBbrProbesAfter || congestion_control(sockets_[i]) != "bbr") continue;
    restart_congestion_control(sockets_[i]);
    restarted_[i] = now;
  }
}

void EdgePacing::look(Clock::time_point now) {
  if (!paces_) return;
  spare_bbr_its_probes(now);
  const Reading reading = read();
  saturated_throughout_ = saturated_throughout_ && reading.saturated;
  under_way_throughout_ = under_way_throughout_ && reading.under_way;
  stalled_meanwhile_ = stalled_meanwhile_ || reading.stalled;
  const double seconds = Seconds(now - since_).count();
  if (seconds < std::max(EdgePacer::kShortestInterval, reading.rtt_seconds)) return;
  // The kernel counts segments, in 32 bits: a smaller segment size, or a wrap, makes it look like going back.
  if (reading.bytes_delivered >= before_.bytes_delivered) {
    const auto delivered = static_cast<double>(reading.bytes_delivered - before_.bytes_delivered);
    pacer_.observe(
        {seconds, delivered, saturated_throughout_, reading.rtt_seconds, under_way_throughout_, stalled_meanwhile_});
    apply();
  }
  since_ = now;
  before_ = reading;
  saturated_throughout_ = reading.saturated;
  under_way_throughout_ = reading.under_way;
  stalled_meanwhile_ = reading.stalled;
}

}  // namespace atl
