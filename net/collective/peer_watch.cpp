#include "net/collective/peer_watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/collective/attempt_context.h"
#include "net/collective/edge_monitor.h"

namespace atl {

PeerWatch::PeerWatch(IslandId peer, std::chrono::milliseconds silence_timeout, PeerSilence& silence,
                     Clock::time_point now)
    : peer_(std::move(peer)),
      silence_timeout_(silence_timeout),
      keepalive_interval_(atl::keepalive_interval(silence_timeout)),
      silence_(silence),
      last_data_(now),
      last_spoke_(now),
      vouched_until_(now) {
  silence_.sent.begin(silence_timeout, now);
  silence_.took.begin(silence_timeout, now);
}

AllReduceFailure PeerWatch::silent(std::string_view verb, Clock::duration time) const {
  return {{ErrorCode::kTimeout, fmt::format("{} {} nothing for {:.1f} s", peer_.value, verb, Seconds(time).count())},
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

void PeerWatch::listen(const Facts& facts, Clock::time_point now) {
  const TcpProgress &tcp = facts.tcp, &before = last_.tcp;
  const bool arrived = tcp.bytes_received != before.bytes_received || tcp.segments_received != before.segments_received;
  if (last_.awaits_hello && (arrived || !facts.awaits_hello)) {
    silence_.sent.begin(silence_timeout_, now);
  } else if (facts.is_read && facts.owes) {
    silence_.sent.look(now, arrived, facts.others_lost_all);
  } else {
    silence_.sent.excuse(now);
  }
  silence_.took.look(now, tcp.bytes_queued == 0 || tcp.bytes_acknowledged != before.bytes_acknowledged);
}

bool PeerWatch::is_lost(Clock::time_point now) const {
  return silence_.sent.lost(now, last_.tcp.smoothed_rtt, [this] { return last_.others_lost_all; });
}

std::optional<AllReduceFailure> PeerWatch::look(const Facts& facts, Clock::time_point now, bool slept) {
  if (facts.data != last_.data || !facts.is_read || slept) last_data_ = now;
  listen(facts, now);
  last_ = facts;
  if (!facts.owes) {
    const bool takes_nothing = facts.is_owed && silence_.took.exhausted(now);
    return takes_nothing ? std::optional(silent("took", now - silence_.took.last_arrival())) : std::nullopt;
  }
  if (is_lost(now)) return silent("sent", now - silence_.sent.last_arrival());
  if (now <= waits_until()) return std::nullopt;
  return AllReduceFailure{{ErrorCode::kTimeout, fmt::format("{} sends keepalives but no data for {:.1f} s", peer_.value,
                                                            Seconds(now - last_data_).count())},
                          peer_,
                          {},
                          /*silent=*/false,
                          facts.data};
}

std::optional<PeerWatch::Suspicion> PeerWatch::suspicion(Clock::time_point now) const {
  const Clock::duration rtt = last_.tcp.smoothed_rtt;
  if (last_.owes && silence_.sent.is_suspect(now, rtt)) {
    return Suspicion{{{}, peer_, {}, /*silent=*/true}, silence_.sent.last_arrival()};
  }
  if (!last_.owes && last_.is_owed && silence_.took.is_suspect(now, rtt)) {
    return Suspicion{{{}, peer_, {}, /*silent=*/true}, silence_.took.last_arrival()};
  }
  if (!last_.owes || waits_until() - now >= kStallTimeouts * silence_timeout_ / 2) return std::nullopt;
  return Suspicion{{{}, peer_, {}, /*silent=*/false, last_.data}, last_data_};
}

}  // namespace atl
