#include "net/mesh/mesh_links.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace atl {
namespace {

constexpr std::uint64_t kProbeBytes = 8u << 20;  // past slow start of most links, half a second at 150 Mbit/s
constexpr std::chrono::seconds kProbesTake{10};  // an island has few to do, one after the other
constexpr std::chrono::minutes kDialAgainAfter{10};
constexpr std::chrono::minutes kDirectAgainAfter{10};
constexpr int kMostDirectDoublings = 4;
constexpr std::chrono::hours kSlowAgainAfter{1};  // an owner's limit changes now and then, a liar's word each time

}  // namespace

void MeshLinks::dialled(const MeshIsland& island, const IslandDialled& event) {
  if (island.entry.address == event.address) matrix_.set_dialable(event.island, event.answered);
}

void MeshLinks::dial(MeshIsland& island) {
  island.dialled_at = turn_.now();
  turn_.act(DialIsland{island.id(), island.entry.address});
}

void MeshLinks::dial_if_hidden(MeshIsland& island) {
  if (!dialable(island.id())) dial(island);
}

void MeshLinks::dial_again(const std::vector<MeshIsland*>& islands) {
  for (MeshIsland* island : islands) {
    if (turn_.now() - island->dialled_at >= kDialAgainAfter) dial_if_hidden(*island);
  }
}

void MeshLinks::probe(const std::vector<IslandId>& islands) {
  if (islands.size() < 3) return;  // one ring only
  for (const auto& [from, to] : matrix_.worth_a_probe(islands, turn_.now())) {
    turn_.send(to, HubProbe{from, kProbeBytes});
    probes_until_ = turn_.now() + kProbesTake;
  }
}

void MeshLinks::report(const IslandId& island, const IslandLinkReport& report, const Membership& members) {
  ++reports_;
  for (const LinkReportEntry& link : report.links) {
    if (!members.contains(link.peer)) continue;
    const IslandId& from = link.outgoing ? island : link.peer;
    const IslandId& to = link.outgoing ? link.peer : island;
    matrix_.report({from, to, link.bytes_per_second, link.rtt_seconds, link.at_least, link.loss}, turn_.now());
  }
}

bool MeshLinks::edge_failed(const IslandPair& edge, const Membership& all, Clock::duration cost) {
  const auto is_proven = [&](const IslandId& id) {
    const MeshIsland* island = all.find(id);
    return island != nullptr && island->conduct.rounds_accepted > 0;
  };
  const auto& [a, b] = edge;
  std::optional<IslandId> unproven;
  if (is_proven(a) != is_proven(b)) unproven = is_proven(a) ? b : a;
  return failures_.failed(a, b, turn_.now(), {cost, all.islands().size()}, unproven);
}

RingChoice MeshLinks::choose(std::vector<AttemptMember> members) const {
  std::ranges::sort(members, std::ranges::greater(), &AttemptMember::id);
  std::ranges::stable_sort(members, {}, [&](const AttemptMember& member) {
    return std::pair(!failures_.is_its_turn(member.id, turn_.now()), member.tokens);
  });
  std::vector<IslandId> first_out;
  for (const AttemptMember& member : members) first_out.push_back(member.id);
  const std::vector<IslandId> apart =
      sums_hop_by_hop(wire_for(members)) ? std::vector<IslandId>() : take_apart(members);
  RingChoice choice = choose_ring(std::move(members), matrix_, last_order_, turn_.now(), first_out);
  choice.sits_out.insert(choice.sits_out.end(), apart.begin(), apart.end());
  return choice;
}

// Everybody needs everybody: of each edge that is dead one end is taken out, that with more of them or the first.
std::vector<IslandId> MeshLinks::take_apart(std::vector<AttemptMember>& members) const {
  std::vector<IslandId> apart;
  while (true) {
    const auto dead_edges = [&](const AttemptMember& member) {
      const auto is_dead = [&](const AttemptMember& other) {
        return matrix_.is_dead(member.id, other.id, turn_.now());
      };
      return std::ranges::count_if(members, is_dead);
    };
    const auto most = std::ranges::max_element(members, {}, dead_edges);  // the first of several
    if (most == members.end() || dead_edges(*most) == 0) return apart;
    apart.push_back(most->id);
    members.erase(most);
  }
}

void MeshLinks::use(const std::vector<AttemptMember>& order) {
  last_order_.clear();
  for (const AttemptMember& member : order) last_order_.push_back(member.id);
}

std::vector<double> MeshLinks::known_rates(const std::vector<AttemptMember>& order) const {
  return atl::known_rates(order, matrix_, turn_.now());
}

WireFormat MeshLinks::wire_for(const std::vector<AttemptMember>& members) const {
  const WireFormat wire = turn_.run().wire;
  const auto hidden = [this](const AttemptMember& member) { return !dialable(member.id); };
  const bool passes_sums_on = !sums_hop_by_hop(wire) && std::ranges::any_of(members, hidden);
  return passes_sums_on ? WireFormat::kInt8Block : wire;
}

Schedule MeshLinks::expected_schedule(std::vector<AttemptMember>& order, double bytes, WireFormat wire) const {
  if (!sums_hop_by_hop(wire) || turn_.now() < direct_again_at_) return Schedule::kRing;
  const auto question = schedule_question(order, bytes, matrix_, turn_.now());
  if (!question || atl::choose_schedule(*question, last_schedule_) == Schedule::kRing) return Schedule::kRing;
  begin_with_the_hidden(order, matrix_);
  return Schedule::kDirect;
}

Schedule MeshLinks::choose_schedule(std::vector<AttemptMember>& order, double bytes, WireFormat wire) {
  return last_schedule_ = expected_schedule(order, bytes, wire);
}

double MeshLinks::longest_seconds(const std::vector<AttemptMember>& order, double bytes) const {
  return atl::longest_seconds(order, bytes, matrix_, turn_.now());
}

bool MeshLinks::has_got_slow(const IslandId& from, const IslandId& to, double bytes_per_second) {
  if (!(bytes_per_second >= kSlowestAwaited && bytes_per_second <= kFastestExpected)) return false;
  const auto known = matrix_.known(from, to, turn_.now());
  if (known && known->bytes_per_second <= kFarSlower * bytes_per_second) return false;
  const auto [last, is_first] = got_slow_.try_emplace(std::minmax(from, to), turn_.now());
  if (!is_first && turn_.now() - last->second < kSlowAgainAfter) return false;
  last->second = turn_.now();
  matrix_.carried(from, to, bytes_per_second, turn_.now());
  return true;
}

// What becomes of exchanges that were under way when another failed, of other fragments, tells of the same time.
void MeshLinks::direct_failed() {
  if (turn_.now() < direct_again_at_) return;
  direct_again_at_ = turn_.now() + kDirectAgainAfter * (1 << std::min(direct_failures_, kMostDirectDoublings));
  ++direct_failures_;
}

void MeshLinks::direct_worked() {
  if (turn_.now() >= direct_again_at_) direct_failures_ = 0;
}

bool MeshLinks::avoid_edge(const IslandPair& edge, std::vector<AttemptMember> members, WireFormat wire) {
  if (!sums_hop_by_hop(wire)) return false;  // everybody needs everybody: no order helps
  if (members.size() > kMaxRing) return false;
  LinkMatrix without = matrix_;
  without.declare_dead(edge.first, edge.second, turn_.now());
  if (!choose_ring(std::move(members), without, {}, turn_.now()).sits_out.empty()) return false;
  declare_dead(edge.first, edge.second);
  return true;
}

// The first time what its ends measure revives it: honest links fail and come back. Not so of one that died again.
void MeshLinks::declare_dead(const IslandId& a, const IslandId& b) {
  const Clock::duration rest = failures_.rest(a, b, turn_.now());
  matrix_.declare_dead(a, b, turn_.now(), rest, /*firmly=*/failures_.rests_again(a, b));
}

void MeshLinks::forget_removed(const IslandId& island) {
  bad_edges_.forget(island);
  std::erase_if(got_slow_, [&](const auto& entry) { return is_end(entry.first, island); });
  failures_.forget(island);
}

}  // namespace atl
