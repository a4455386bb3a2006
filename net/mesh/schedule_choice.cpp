#include "net/mesh/schedule_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "net/wire/ring_frame.h"

namespace atl {
namespace {

constexpr double kPacketBytes = 1448;    // of TCP in 1500 bytes of Ethernet
constexpr double kMostPacketLoss = 0.2;  // of links that carry anything; more is a mistake or a lie
constexpr double kDirectShare = 1.15;
constexpr double kWorthIt = 0.9;
constexpr double kMoments = 0.05;  // seconds
// For how long an attempt may take.
constexpr double kMostDelays = 2;          // of what the model says
constexpr double kLongestExpectedRtt = 1;  // seconds, the mean of a ring's edges

double chunk_bytes(const ScheduleQuestion& question) { return question.bytes / question.islands; }

double recoveries_of_chunk(const ScheduleQuestion& question, const UsedLinks& links) {
  return recoveries(chunk_bytes(question) / kPacketBytes, links.loss);
}

// Of either direction, the larger; 0: not known.
double rtt_between(const IslandId& a, const IslandId& b, const LinkMatrix& links, Clock::time_point now) {
  const auto one = links.known(a, b, now), other = links.known(b, a, now);
  return std::max(one ? one->rtt_seconds : 0, other ? other->rtt_seconds : 0);
}

void use(UsedLinks& links, const KnownLink& link) {
  links.slowest_bytes_per_second = std::min(links.slowest_bytes_per_second, link.bytes_per_second);
  links.loss = std::max(links.loss, link.loss.value_or(0));
}

// Each edge of the ring of which something is known; of the others the ring is given the benefit.
UsedLinks links_of_ring(const std::vector<AttemptMember>& order, const LinkMatrix& links, Clock::time_point now) {
  UsedLinks used{.slowest_bytes_per_second = std::numeric_limits<double>::infinity()};
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const IslandId &from = order[rank].id, &to = order[(rank + 1) % order.size()].id;
    used.rtt_seconds += rtt_between(from, to, links, now) / static_cast<double>(order.size());
    if (const auto link = links.known(from, to, now)) use(used, *link);
  }
  return used;
}

std::optional<UsedLinks> links_of_exchange(const std::vector<AttemptMember>& order, const LinkMatrix& links,
                                           Clock::time_point now) {
  UsedLinks used{.slowest_bytes_per_second = std::numeric_limits<double>::infinity()};
  for (const AttemptMember& from : order) {
    bool sends = false;
    for (const AttemptMember& to : order) {
      if (from.id == to.id) continue;
      const double rtt = rtt_between(from.id, to.id, links, now);
      if (rtt <= 0 || !links.have_met(from.id, to.id, now)) return std::nullopt;
      used.rtt_seconds = std::max(used.rtt_seconds, rtt);
      const auto link = links.known(from.id, to.id, now);
      if (!link) continue;
      use(used, *link);
      sends = true;
    }
    if (!sends) return std::nullopt;
  }
  return used;
}

}  // namespace

double recoveries(double packets, double loss) {
  if (packets <= 0 || loss <= 0) return 0;
  const double lost = std::min(loss, kMostPacketLoss);
  const double expected = packets * lost;
  // One packet alone is lost as often as any.
  const double until_the_last = std::log(std::max(packets, 2.0)) / std::log(1 / lost);
  return std::min(expected, until_the_last);
}

double ring_seconds(const ScheduleQuestion& question) {
  const UsedLinks& links = question.ring;
  const double chunk = chunk_bytes(question) / links.slowest_bytes_per_second;
  const double recovery = recoveries_of_chunk(question, links) * links.rtt_seconds;
  return 2 * (question.islands - 1) * (std::max(chunk, links.rtt_seconds / 2) + recovery);
}

double direct_seconds(const ScheduleQuestion& question) {
  const UsedLinks& links = question.direct;
  const double chunk = chunk_bytes(question) / links.slowest_bytes_per_second;
  const double delay = (1.5 + 2 * recoveries_of_chunk(question, links)) * links.rtt_seconds;
  return kDirectShare * 2 * (question.islands - 1) * chunk + delay;
}

Schedule choose_schedule(const ScheduleQuestion& question, Schedule previous) {
  const double ring = ring_seconds(question), direct = direct_seconds(question);
  const bool stays = previous == Schedule::kDirect && direct < ring;
  const bool gains = direct <= kWorthIt * ring && ring - direct >= kMoments;
  return stays || gains ? Schedule::kDirect : Schedule::kRing;
}

std::optional<ScheduleQuestion> schedule_question(const std::vector<AttemptMember>& order, double bytes,
                                                  const LinkMatrix& links, Clock::time_point now) {
  if (order.size() < 3 || order.size() > static_cast<std::size_t>(kMaxDirectIslands) || bytes <= 0) return std::nullopt;
  const auto hidden = [&](const AttemptMember& member) { return !links.dialable(member.id); };
  if (std::ranges::count_if(order, hidden) > 1) return std::nullopt;
  const std::optional<UsedLinks> exchange = links_of_exchange(order, links, now);
  if (!exchange) return std::nullopt;
  return ScheduleQuestion{.islands = static_cast<int>(order.size()),
                          .bytes = bytes,
                          .ring = links_of_ring(order, links, now),
                          .direct = *exchange};
}

double longest_seconds(const std::vector<AttemptMember>& order, double bytes, const LinkMatrix& links,
                       Clock::time_point now) {
  double slowest = kFastestExpected;
  std::vector<double> out(order.size()), in(order.size());  // the best that each end is known to do with anybody
  for (std::size_t from = 0; from < order.size(); ++from) {
    for (std::size_t to = 0; to < order.size(); ++to) {
      const auto link = links.known(order[from].id, order[to].id, now);
      if (!link) continue;
      slowest = std::min(slowest, link->bytes_per_second);
      out[from] = std::max(out[from], link->bytes_per_second);
      in[to] = std::max(in[to], link->bytes_per_second);
    }
  }
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const std::size_t next = (rank + 1) % order.size();
    if (links.known(order[rank].id, order[next].id, now)) continue;
    slowest = std::min(slowest, LinkMatrix::kConservative * std::min(out[rank], in[next]));
  }
  UsedLinks ring = links_of_ring(order, links, now);
  ring.rtt_seconds = std::min(ring.rtt_seconds, kLongestExpectedRtt);
  const double chunk = bytes / static_cast<double>(order.size());
  const double delays = 2 * static_cast<double>(order.size() - 1) *
                        (0.5 + recoveries(chunk / kPacketBytes, ring.loss)) * ring.rtt_seconds;
  return 2 * bytes / std::max(slowest / kFarSlower, kSlowestAwaited) + kMostDelays * delays;
}

void begin_with_the_hidden(std::vector<AttemptMember>& order, const LinkMatrix& links) {
  const auto hidden = std::ranges::find_if(order, [&](const auto& member) { return !links.dialable(member.id); });
  if (hidden != order.end()) std::ranges::rotate(order, hidden);
}

}  // namespace atl
