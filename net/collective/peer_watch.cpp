#include "net/collective/peer_watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/collective/attempt_context.h"
#include "net/collective/edge_monitor.h"

namespace atl {

PeerWatch::PeerWatch(IslandId peer, std::chrono::milliseconds silence_timeout, Clock::time_point now)
    : peer_(std::move(peer)),
      silence_timeout_(silence_timeout),
      keepalive_interval_(atl::keepalive_interval(silence_timeout)),
      last_heard_(now),
      last_data_(now),
      last_taken_(now),
      last_spoke_(now),
      vouched_until_(now) {}

AllReduceFailure PeerWatch::silent(std::string_view verb) const {
  const Seconds allowed = silence_timeout_;
  return {{ErrorCode::kTimeout, fmt::format("{} {} nothing for {:.1f} s", peer_.value, verb, allowed.count())},
          peer_,
          {},
          /*silent=*/true};
}

Clock::time_point PeerWatch::waits_until() const {
  return std::clamp(vouched_until_, last_data_ + kStallTimeouts * silence_timeout_,
                    last_data_ + kLongestStall * silence_timeout_);
}

void PeerWatch::vouch(std::chrono::milliseconds patience, Clock::time_point now) {
  // Believed no longer than this island would wait by itself.
  const auto longest = kStallTimeouts * silence_timeout_;
  vouched_until_ = std::max(vouched_until_, now + std::min<std::chrono::milliseconds>(patience, longest));
}

bool PeerWatch::keepalive_due(Clock::time_point now) const {
  return last_.is_owed && now - last_spoke_ >= keepalive_interval_;
}

std::optional<AllReduceFailure> PeerWatch::look(const Facts& facts, Clock::time_point now, bool slept) {
  if (facts.tcp.bytes_received != last_.tcp.bytes_received || !facts.is_read) last_heard_ = now;
  if (facts.data != last_.data || !facts.is_read || slept) last_data_ = now;
  if (facts.tcp.bytes_queued == 0 || facts.tcp.bytes_acknowledged != last_.tcp.bytes_acknowledged) last_taken_ = now;
  last_ = facts;
  if (!facts.owes) {
    const bool takes_nothing = facts.is_owed && now - last_taken_ > silence_timeout_;
    return takes_nothing ? std::optional(silent("took")) : std::nullopt;
  }
  if (now - last_heard_ > silence_timeout_) return silent("sent");
  if (now <= waits_until()) return std::nullopt;
  return AllReduceFailure{{ErrorCode::kTimeout, fmt::format("{} sends keepalives but no data for {:.1f} s", peer_.value,
                                                            Seconds(now - last_data_).count())},
                          peer_,
                          {},
                          /*silent=*/false,
                          facts.data};
}

std::optional<PeerWatch::Suspicion> PeerWatch::suspicion(Clock::time_point now) const {
  const auto long_enough = silence_timeout_ / 2;  // more than one keepalive was due
  if (last_.owes && now - last_heard_ > long_enough) return Suspicion{{{}, peer_, {}, /*silent=*/true}, last_heard_};
  if (!last_.owes && last_.is_owed && now - last_taken_ > long_enough) {
    return Suspicion{{{}, peer_, {}, /*silent=*/true}, last_taken_};
  }
  if (!last_.owes || waits_until() - now >= kStallTimeouts * silence_timeout_ / 2) return std::nullopt;
  return Suspicion{{{}, peer_, {}, /*silent=*/false, last_.data}, last_data_};
}

}  // namespace atl
