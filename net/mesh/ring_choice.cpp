#include "net/mesh/ring_choice.h"

#include <algorithm>

namespace atl {
namespace {

constexpr double kNearlyAsFast = 0.9;

// The members' indices in the previous order, where it holds the same islands; else nothing.
std::vector<int> positions(const std::vector<IslandId>& ids, const std::vector<IslandId>& previous) {
  if (ids.size() != previous.size()) return {};
  std::vector<int> order;
  for (const IslandId& id : previous) {
    const auto found = std::ranges::find(ids, id);
    if (found == ids.end()) return {};
    order.push_back(static_cast<int>(found - ids.begin()));
  }
  return order;
}

}  // namespace

RingChoice choose_ring(std::vector<AttemptMember> members, const LinkMatrix& links,
                       const std::vector<IslandId>& previous, Clock::time_point now,
                       const std::vector<IslandId>& first_out) {
  std::ranges::sort(members, {}, &AttemptMember::id);
  std::vector<IslandId> ids;
  ids.reserve(members.size());
  for (const AttemptMember& member : members) ids.push_back(member.id);
  if (members.empty() || members.size() > kMaxRing || !links.knows(ids, now)) return {std::move(members), {}};

  RingQuestion question = links.question(ids, now);
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto place = std::ranges::find(first_out, ids[i]) - first_out.begin();
    question.tokens[i] = first_out.empty() ? members[i].tokens : static_cast<std::uint64_t>(place);
  }
  RingOrder best = order_ring(question);
  const std::vector<int> kept = positions(ids, previous);
  const bool keeps = best.sits_out.empty() && kept.size() > 1 &&
                     slowest_edge(question, kept) >= kNearlyAsFast * best.slowest_bytes_per_second;
  RingChoice choice;
  for (const int index : keeps ? kept : best.order) choice.order.push_back(members[static_cast<std::size_t>(index)]);
  for (const int index : best.sits_out) choice.sits_out.push_back(ids[static_cast<std::size_t>(index)]);
  for (std::size_t rank = 0; rank < choice.order.size() && choice.order.size() > 1; ++rank) {
    AttemptMember& next = choice.order[(rank + 1) % choice.order.size()];
    next.dials_previous = !links.dialable(next.id);
  }
  return choice;
}

std::vector<double> known_rates(const std::vector<AttemptMember>& order, const LinkMatrix& links,
                                Clock::time_point now) {
  std::vector<double> rates;
  bool any = false;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const auto link = links.known(order[rank].id, order[(rank + 1) % order.size()].id, now);
    rates.push_back(link ? link->bytes_per_second : 0);
    any = any || link.has_value();
  }
  return any ? rates : std::vector<double>();
}

}  // namespace atl
