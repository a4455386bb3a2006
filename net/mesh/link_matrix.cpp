#include "net/mesh/link_matrix.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace atl {
namespace {

constexpr double kFastestBelieved = 1e12;  // bytes a second: more is a mistake or a lie
constexpr double kLongestRtt = 60;         // seconds

double seconds(Clock::duration duration) { return Seconds(duration).count(); }

double larger(double a, double b) { return std::max(a, b); }

}  // namespace

void LinkMatrix::report(const LinkMeasurement& measurement, Clock::time_point now) {
  const auto& [from, to, rate, rtt, at_least, loss] = measurement;
  if (from == to || !std::isfinite(rate) || rate <= 0 || rate > kFastestBelieved) return;
  if (!std::isfinite(rtt) || rtt < 0 || rtt > kLongestRtt) return;
  if (loss && !(*loss >= 0 && *loss <= 1)) return;
  const auto dead = deaths_.find(std::minmax(from, to));
  if (dead != deaths_.end() && !dead->second.firmly) dead->second.over = true;
  const Entry* known = find(from, to, now);
  Entry next = known != nullptr ? *known : Entry{};
  if (rtt > 0) next.rtt_seconds = rtt;
  if (loss) {
    next.loss_before = std::exchange(next.loss, loss);
    next.loss_when = now;
  }
  next.bytes_per_second = rate;
  next.at_least = at_least;
  next.when = now;
  if (known != nullptr && at_least && rate <= known->bytes_per_second) {
    // Nothing new about the rate: it stays as old as it was, for a probe to be due.
    next.bytes_per_second = known->bytes_per_second;
    next.at_least = known->at_least;
    next.when = known->when;
  } else if (known != nullptr && !at_least && !known->at_least) {
    const double weight = std::exp2(-1 - seconds(now - known->when) / seconds(kHalfLife));
    next.bytes_per_second = (1 - weight) * rate + weight * known->bytes_per_second;
  }
  entries_[{from, to}] = next;
}

void LinkMatrix::carried(const IslandId& from, const IslandId& to, double bytes_per_second, Clock::time_point now) {
  const Entry* known = find(from, to, now);
  if (from == to || (known != nullptr && known->bytes_per_second <= bytes_per_second)) return;
  Entry next = known != nullptr ? *known : Entry{};
  next.bytes_per_second = bytes_per_second;
  next.at_least = true;
  next.when = now;
  entries_[{from, to}] = next;
}

void LinkMatrix::declare_dead(const IslandId& a, const IslandId& b, Clock::time_point now, Clock::duration dead_for,
                              bool firmly) {
  if (a == b) return;
  const auto [known, first] = deaths_.try_emplace(std::minmax(a, b));
  const bool again = !first && known->second.over && now - known->second.when <= kDeadFor;
  known->second = {now, dead_for, firmly, false, again};
}

void LinkMatrix::revive() {
  for (auto& [edge, death] : deaths_) death.over = true;
}

void LinkMatrix::set_dialable(const IslandId& island, bool dialable) {
  if (dialable) {
    undialable_.erase(island);
  } else {
    undialable_.insert(island);
  }
}

void LinkMatrix::forget(const IslandId& island) {
  const auto concerns = [&](const auto& entry) { return entry.first.first == island || entry.first.second == island; };
  std::erase_if(entries_, concerns);
  undialable_.erase(island);
}

const LinkMatrix::Entry* LinkMatrix::find(const IslandId& from, const IslandId& to, Clock::time_point now) const {
  const auto found = entries_.find({from, to});
  return found == entries_.end() || now - found->second.when > kForgottenAfter ? nullptr : &found->second;
}

std::optional<KnownLink> LinkMatrix::known(const IslandId& from, const IslandId& to, Clock::time_point now) const {
  const Entry* entry = find(from, to, now);
  if (entry == nullptr) return std::nullopt;
  KnownLink link{entry->bytes_per_second, entry->rtt_seconds};
  const bool of_late = now - entry->loss_when <= kLossForgottenAfter;
  if (entry->loss && entry->loss_before && of_late) link.loss = std::min(*entry->loss, *entry->loss_before);
  return link;
}

bool LinkMatrix::have_met(const IslandId& a, const IslandId& b, Clock::time_point now) const {
  return (find(a, b, now) != nullptr || find(b, a, now) != nullptr) && !is_dead(a, b, now);
}

const LinkMatrix::Death* LinkMatrix::death(const IslandId& a, const IslandId& b, Clock::time_point now) const {
  const auto found = deaths_.find(std::minmax(a, b));
  if (found == deaths_.end() || found->second.over || now - found->second.when > found->second.lasts) {
    return nullptr;
  }
  return &found->second;
}

bool LinkMatrix::knows(const std::vector<IslandId>& islands, Clock::time_point now) const {
  for (const IslandId& from : islands) {
    if (undialable_.contains(from)) return true;
    for (const IslandId& to : islands) {
      if (find(from, to, now) != nullptr || is_dead(from, to, now)) return true;
    }
  }
  return false;
}

RingQuestion LinkMatrix::question(const std::vector<IslandId>& islands, Clock::time_point now) const {
  const int count = static_cast<int>(islands.size());
  RingQuestion question(count);
  std::vector<double> out(islands.size()), in(islands.size());  // the best that each end does with anybody
  double best = 0, longest_rtt = 0;
  const auto id = [&](int i) -> const IslandId& { return islands[static_cast<std::size_t>(i)]; };
  const auto each_edge = [&](auto use) {
    for (int i = 0; i < count; ++i) {
      for (int j = 0; j < count; ++j) {
        if (i != j) use(i, j, find(id(i), id(j), now));
      }
    }
  };
  each_edge([&](int i, int j, const Entry* entry) {
    if (entry == nullptr) return;
    const auto from = static_cast<std::size_t>(i), to = static_cast<std::size_t>(j);
    out[from] = larger(out[from], entry->bytes_per_second);
    in[to] = larger(in[to], entry->bytes_per_second);
    best = larger(best, entry->bytes_per_second);
    longest_rtt = larger(longest_rtt, entry->rtt_seconds);
  });
  each_edge([&](int i, int j, const Entry* entry) {
    RingEdge& edge = question.edge(i, j);
    edge.dead = is_dead(id(i), id(j), now);
    const double from = out[static_cast<std::size_t>(i)], to = in[static_cast<std::size_t>(j)];
    // An end that nobody has measured may be the slowest of all; without any measurement all edges are alike.
    const double guess = std::min(from > 0 ? from : best, to > 0 ? to : best);
    edge.bytes_per_second = entry != nullptr ? entry->bytes_per_second : guess > 0 ? kConservative * guess : 1;
    const Entry* back = find(id(j), id(i), now);
    const double measured_rtt =
        larger(entry != nullptr ? entry->rtt_seconds : 0, back != nullptr ? back->rtt_seconds : 0);
    edge.rtt_seconds = measured_rtt > 0 ? measured_rtt : longest_rtt;
  });
  for (int i = 0; i < count; ++i) question.dialable[static_cast<std::size_t>(i)] = !undialable_.contains(id(i));
  return question;
}

std::vector<std::pair<IslandId, IslandId>> LinkMatrix::worth_a_probe(const std::vector<IslandId>& islands,
                                                                     Clock::time_point now) const {
  std::vector<std::pair<Clock::duration, Edge>> due;  // by age, the oldest first
  for (const IslandId& from : islands) {
    for (const IslandId& to : islands) {
      const bool reachable = !undialable_.contains(from);  // `to` fetches from `from`
      if (from == to || !reachable) continue;
      if (const Death* dead = death(from, to, now)) {
        if (!dead->again && now - dead->when >= kProbeDeadAfter)
          due.emplace_back(Clock::duration::zero(), Edge{from, to});
        continue;
      }
      const Entry* entry = find(from, to, now);
      // One that was measured the other way has met: pairs that never did come first.
      const Clock::duration unknown =
          find(to, from, now) != nullptr ? Clock::duration(kForgottenAfter) : Clock::duration::max();
      const Clock::duration age = entry == nullptr  ? unknown
                                  : entry->at_least ? now - entry->when + kProbeAfter / 2
                                                    : now - entry->when;
      if (age >= kProbeAfter) due.emplace_back(age, Edge{from, to});
    }
  }
  std::ranges::sort(
      due, [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  std::set<IslandId> busy;
  std::vector<Edge> chosen;
  for (const auto& [age, edge] : due) {
    if (busy.contains(edge.first) || busy.contains(edge.second)) continue;
    busy.insert({edge.first, edge.second});
    chosen.push_back(edge);
  }
  return chosen;
}

}  // namespace atl
