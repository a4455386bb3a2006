// RoundCoordinator: why an attempt failed, and who is left out of the next.
#include <fmt/format.h>

#include <algorithm>

#include "net/mesh/ring_choice.h"
#include "net/mesh/round_coordinator.h"

namespace atl {

// When all have said what they saw. An edge that both of its ends found silent is dead at once, where a ring can do
// without it; anything else is an accusation, and is counted.
void RoundCoordinator::judge_failure() {
  if (!failure_ || !kept_ || (!kept_->complete() && now_ < kept_due_)) return;
  const FailureReports reports = *std::exchange(failure_, std::nullopt);
  bool avoided = false;
  for (const auto& [a, b] : reports.silent_edges()) avoided = avoid_edge(a, b) || avoided;
  const auto& [reporter, report] = reports.blamed();
  MeshIsland* island = find(reporter);
  if (island == nullptr || avoided) return;
  // Who accuses one with whom it had no edge accuses itself.
  const bool had_edge = report.peer && had_edge_with(reporter, *report.peer);
  blame(*island, had_edge ? report.peer : std::nullopt, report.reason);
}

// In the attempt that failed last.
bool RoundCoordinator::had_edge_with(const IslandId& a, const IslandId& b) const {
  const auto place_of = [&](const IslandId& id) { return std::ranges::find(failed_order_, id, &AttemptMember::id); };
  const auto one = place_of(a), other = place_of(b);
  if (one == failed_order_.end() || other == failed_order_.end() || one == other) return false;
  const auto distance = std::abs(one - other);
  return distance == 1 || distance == std::ssize(failed_order_) - 1 || !sums_hop_by_hop(last_wire_);
}

// False, and the edge is as before, when no ring of all members does without it.
bool RoundCoordinator::avoid_edge(const IslandId& a, const IslandId& b) {
  if (!sums_hop_by_hop(last_wire_)) return false;  // everybody needs everybody: no order helps
  std::vector<AttemptMember> members = ready_members();
  if (members.size() > kMaxRing) return false;
  LinkMatrix without = links_;
  without.declare_dead(a, b, now_);
  if (!choose_ring(std::move(members), without, {}, now_).sits_out.empty()) return false;
  links_ = std::move(without);
  return true;
}

// Both ends live and their edge does not: the next order avoids it; where none can, the end with fewer tokens sits the
// round out (DESIGN, Blame).
void RoundCoordinator::blame(MeshIsland& reporter, const std::optional<IslandId>& peer, const std::string& reason) {
  if (!blame_.record(reporter.id(), peer)) return;
  if (peer && find(*peer) != nullptr) {
    if (avoid_edge(reporter.id(), *peer)) return;
    links_.declare_dead(reporter.id(), *peer, now_);
  }
  const auto tokens = [](const MeshIsland& island) { return island.ready ? island.ready->tokens : 0; };
  MeshIsland* loser = &reporter;
  MeshIsland* other = peer ? find(*peer) : nullptr;
  if (MeshIsland* common = peer ? common_end(reporter.id(), *peer) : nullptr; common != nullptr) {
    loser = common;
  } else if (other != nullptr && other->part != MeshIsland::Part::kNone) {
    const bool other_has_less = tokens(*other) < tokens(reporter);
    const bool equal_and_later = tokens(*other) == tokens(reporter) && other->id() > reporter.id();
    if (other_has_less || equal_and_later) loser = other;
  }
  loser->sits_out = true;
  const auto can_go_on = [](const auto& entry) {
    return entry.second.ready && entry.second.ready->tokens > 0 && !entry.second.sits_out;
  };
  if (std::ranges::any_of(islands_, can_go_on)) return;
  send_away(loser->id(), ErrorCode::kInternal,
            fmt::format("its average failed {} times and no other island can take the round over: {}",
                        EdgeBlame::kTolerated, reason));
}

// Whoever is an end of this edge and of one to another island that failed before in this round: that explains both, and
// the other end of the first sat out for nothing. Two that accuse each other are one word against another; one that all
// accuse, or that accuses all, is not.
MeshIsland* RoundCoordinator::common_end(const IslandId& a, const IslandId& b) {
  failed_edges_.insert(std::minmax(a, b));
  for (const IslandId& end : {a, b}) {
    const auto at_it = [&](const IslandPair& edge) { return edge.first == end || edge.second == end; };
    if (std::ranges::count_if(failed_edges_, at_it) < 2 || find(end) == nullptr) continue;
    for (const IslandPair& edge : failed_edges_) {
      if (!at_it(edge)) continue;
      const IslandId& peer = edge.first == end ? edge.second : edge.first;
      MeshIsland* island = find(peer);
      if (island != nullptr && !left_out_.contains(peer)) island->sits_out = lost_too_often(peer);
    }
    return find(end);
  }
  return nullptr;
}

// ---- lies

// Its members hold different averages: each is asked for its bytes, chunk by chunk.
void RoundCoordinator::inquire() {
  inquiry_.emplace(attempt_->number(), attempt_->order(), attempt_->live());
  inquiry_due_ = now_ + run_.dead_after;
  for (const IslandId& id : attempt_->live()) send(id, HubShowChunks{committed_, attempt_->number()});
}

void RoundCoordinator::settle_inquiry() {
  if (!inquiry_ || (!inquiry_->complete() && now_ < inquiry_due_)) return;
  const DigestInquiry inquiry = *std::exchange(inquiry_, std::nullopt);
  if (!attempt_ || attempt_->number() != inquiry.attempt()) return;
  if (attempt_keeps_buckets_) {
    // What an earlier attempt made was not shown, and may have been altered in it: the next one makes all anew.
    ++reported_failures_;
    fail_attempt("the members hold different averages, parts of which are of an attempt before", retry_delay());
    kept_.reset();
    return;
  }
  const std::set<IslandPair> edges = inquiry.bad_edges();
  bad_edges_.add(edges);
  std::vector<IslandId> likely;
  if (const auto culprit = bad_edges_.culprit()) likely.push_back(*culprit);
  // One that does not show its bytes where most do hides an edge. Where bytes were altered on their way, or may have
  // been, whoever got them is outvoted and innocent.
  const std::vector<IslandId> silent = inquiry.silent(), outvoted = attempt_->outvoted();
  const bool most_answered = silent.size() * 2 < attempt_->live().size();
  culpable_.clear();
  if (most_answered) culpable_ = edges.empty() && silent.empty() ? outvoted : silent;
  const std::vector<IslandId>& likelier = most_answered ? culpable_ : outvoted;
  likely.insert(likely.end(), likelier.begin(), likelier.end());
  for (const auto& [a, b] : edges) likely.insert(likely.end(), {a, b});
  ++reported_failures_;
  fail_attempt("the members hold different averages", retry_delay());
  kept_.reset();  // nobody knows which of them are right
  // Once more with other neighbours: that tells the two ends of a bad edge apart. In a ring of three, the other way
  // round.
  bool avoided = false;
  for (const auto& [a, b] : edges) avoided = avoid_edge(a, b) || avoided;
  if (!edges.empty() && !avoided) turned_ = !turned_;
  search_for_liar(likely, "the members hold different averages");
}

// Who may be left out of the next attempt: those that are likely to lie, then those that only receive, then the newest
// of the run. Where fewer than three trained, none of them may, for one alone is checked by nobody.
void RoundCoordinator::search_for_liar(const std::vector<IslandId>& likely, const std::string& reason) {
  std::vector<const MeshIsland*> members;
  std::size_t trainers = 0;
  for (const auto& [id, island] : islands_) {
    const bool takes_part =
        island.part != MeshIsland::Part::kNone && island.connected && !island.sits_out && island.ready;
    if (takes_part) members.push_back(&island);
    if (takes_part && island.ready->tokens > 0) ++trainers;
  }
  const bool may_lose_one = trainers >= 3 && trainers > run_.quorum;
  std::erase_if(members, [&](const MeshIsland* island) { return island->ready->tokens > 0 && !may_lose_one; });
  const auto likelihood = [&](const MeshIsland* island) {
    return std::ranges::find(likely, island->id()) - likely.begin();
  };
  std::ranges::sort(members, [&](const MeshIsland* a, const MeshIsland* b) {
    if (likelihood(a) != likelihood(b)) return likelihood(a) < likelihood(b);
    const bool a_trained = a->ready->tokens > 0, b_trained = b->ready->tokens > 0;
    if (a_trained != b_trained) return b_trained;
    if (a->rounds_accepted != b->rounds_accepted) return a->rounds_accepted < b->rounds_accepted;
    return a->id() > b->id();
  });
  std::vector<IslandId> suspects;
  for (const MeshIsland* island : members) suspects.push_back(island->id());
  lies_.failed(suspects);
  lie_ = reason;
}

// Of the round, and it is told why; whoever gives cause round after round is sent away.
void RoundCoordinator::leave_out(MeshIsland& island, const std::string& reason) {
  const IslandId id = island.id();
  island.sits_out = true;
  left_out_.insert(id);
  island.left_out_for = reason;
  publish(WorkLeftOut{id, committed_, reason});
  if (++island.strikes >= kMostStrikes) {
    send_away(
        id, ErrorCode::kInternal,
        fmt::format("its work was left out of {} rounds in a row: {}; check this machine's memory and that it runs "
                    "the run's version of atoll",
                    kMostStrikes, reason));
  }
}

// Work whose norm is far from the others' is not averaged. One that trains alone is compared with nobody.
void RoundCoordinator::leave_out_the_large() {
  std::map<IslandId, double> norms;
  for (const auto& [id, island] : islands_) {
    const bool trains = island.part == MeshIsland::Part::kTrainer && island.connected && !island.sits_out;
    if (trains && island.ready && island.ready->tokens > 0) norms[id] = island.ready->norm_over_steps;
  }
  std::vector<std::pair<IslandId, std::string>> large;
  for (const auto& [id, norm] : norms) {
    std::vector<double> others;
    for (const auto& [other, its_norm] : norms) {
      if (other != id) others.push_back(its_norm);
    }
    if (others.empty()) return;
    const auto limit = norms_.limit(id, std::move(others));
    if (!limit || norm <= *limit) continue;
    large.emplace_back(id,
                       fmt::format("the norm of what it learned in round {} is {:.3g} an inner step, and the others' "
                                   "allow {:.3g}",
                                   committed_.value, norm, *limit));
  }
  if (large.size() == norms.size()) return;
  for (const auto& [id, reason] : large) {
    if (MeshIsland* island = find(id)) leave_out(*island, reason);
  }
}

}  // namespace atl
