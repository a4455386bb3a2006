#include "net/mesh/neighbour_advice.h"

#include <algorithm>

namespace atl {
namespace {

// A ring is not chosen anew for each of many that come and go, nor for each report.
constexpr std::chrono::seconds kLeastBetweenLooks{1}, kBetweenLooksAtLinks{10};

bool is_same(const HubNeighbours& a, const HubNeighbours& b) {
  const auto same = [](const AttemptMember& one, const AttemptMember& other) {
    return one.id == other.id && one.address == other.address && one.dials_previous == other.dials_previous;
  };
  return a.schedule == b.schedule && std::ranges::equal(a.order, b.order, same);
}

// Of the bytes of an attempt, what a member sends to each.
double share_of_each(Schedule schedule, std::size_t islands, WireFormat wire) {
  const double phases = sums_hop_by_hop(wire) ? 2 : 1;  // below 8 bits sums alone go round the ring
  const double chunks = schedule == Schedule::kDirect ? 1 : static_cast<double>(islands - 1);
  return phases * chunks / static_cast<double>(islands);
}

}  // namespace

void NeighbourAdvice::settle(const OpenRound* round, bool averages) {
  if (averages) {
    looked_at_.reset();
    for (auto& [id, island] : members_.islands()) island.told_neighbours.reset();
    return;
  }
  if (round == nullptr || links_.probes()) return;
  std::vector<AttemptMember> members = round->parts().likely_members();
  if (members.size() < 2 || !is_due(*round, members)) return;
  advise(*round, std::move(members));
}

bool NeighbourAdvice::is_due(const OpenRound& round, const std::vector<AttemptMember>& members) {
  const auto now = turn_.now();
  if (looked_at_ && now - *looked_at_ < kLeastBetweenLooks) return false;
  std::vector<Known> known;
  for (const AttemptMember& member : members) {
    const MeshIsland* island = members_.find(member.id);
    const auto since = island != nullptr ? island->recovers_since : Clock::time_point{};
    known.emplace_back(round.round(), member.id, member.address, since, links_.dialable(member.id));
  }
  const bool links_changed = reports_ != links_.reports() && looked_at_ && now - *looked_at_ >= kBetweenLooksAtLinks;
  if (looked_at_ && known == known_ && !links_changed) return false;
  known_ = std::move(known);
  reports_ = links_.reports();
  looked_at_ = now;
  return true;
}

// As OpenRound::open_attempt() would.
void NeighbourAdvice::advise(const OpenRound& round, std::vector<AttemptMember> members) {
  RingChoice ring = links_.choose(std::move(members));
  if (!ring.sits_out.empty()) {
    std::erase_if(ring.order, [&](const AttemptMember& member) {
      return std::ranges::find(ring.sits_out, member.id) != ring.sits_out.end();
    });
    ring = links_.choose(std::move(ring.order));
    if (!ring.sits_out.empty()) return;
  }
  const std::size_t islands = ring.order.size();
  if (islands < 2) return;
  const WireFormat wire = links_.wire_for(ring.order);
  const auto bytes = static_cast<double>(encoded_bytes(wire, turn_.numel_of(round.fragment())));
  HubNeighbours all{std::move(ring.order)};
  all.schedule = links_.expected_schedule(all.order, bytes, wire);
  all.bytes_to_each = static_cast<std::uint64_t>(bytes * share_of_each(all.schedule, islands, wire));
  for (AttemptMember& member : all.order) member.tokens = 0;
  for (std::size_t rank = 0; rank < islands; ++rank) tell(all, rank);
}

void NeighbourAdvice::tell(const HubNeighbours& all, std::size_t rank) {
  const std::size_t islands = all.order.size();
  HubNeighbours own = all;
  if (all.schedule == Schedule::kRing && islands > 3) {
    own.order = {all.order[(rank + islands - 1) % islands], all.order[rank], all.order[(rank + 1) % islands]};
  }
  const bool all_take_it = std::ranges::all_of(own.order, [this](const AttemptMember& member) {
    const MeshIsland* island = members_.find(member.id);
    return island != nullptr && island->dials_ahead;
  });
  MeshIsland* island = members_.find(all.order[rank].id);
  if (!all_take_it || (island->told_neighbours && is_same(*island->told_neighbours, own))) return;
  members_.send_roster_if_changed();  // else a newcomer's dials are refused
  turn_.send(island->id(), own);
  island->told_neighbours = std::move(own);
}

}  // namespace atl
