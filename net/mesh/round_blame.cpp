#include "net/mesh/round_blame.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "net/base/round_words.h"
namespace atl {
namespace {

constexpr int kMostStrikes = 3;
constexpr int kLeastStall = 2;  // silence timeouts: islands say of no peer before that it stalls

}  // namespace

RoundBlame::RoundBlame(CoordinatorTurn& turn, Membership& members, MeshLinks& links, MeshTrust& trust,
                       RoundParts& parts, MeshVerdicts& verdicts)
    : turn_(turn), members_(members), links_(links), trust_(trust), parts_(parts), verdicts_(verdicts) {}

void RoundBlame::attempt_failed(const std::vector<AttemptMember>& order, WireFormat wire, Schedule schedule,
                                Clock::duration lasted) {
  failed_order_ = order;
  failed_after_ = lasted;
  failed_wire_ = wire;
  failed_schedule_ = schedule;
  at_fault_.clear();
  held_up_.clear();
  forget_reports();
}

void RoundBlame::report(const IslandId& reporter, const IslandAttemptFailed& report) {
  reports_.emplace().add(reporter, report);
}

void RoundBlame::add_report(const IslandId& reporter, const IslandAttemptFailed& report) {
  if (reports_) reports_->add(reporter, report);
}

bool RoundBlame::note_broken_edge(const OpenAttempt& attempt, Schedule schedule, const IslandId& reporter,
                                  const IslandAttemptFailed& report, bool at_first_hand, Clock::duration cost) {
  failed_order_ = attempt.order();
  failed_after_ = cost;
  failed_schedule_ = schedule;
  if (!report.peer || !had_edge_with(reporter, *report.peer)) return false;
  (void)edge_failed(std::minmax(reporter, *report.peer), at_first_hand);
  return true;
}

void RoundBlame::report_held_up(HeldUp held_up) {
  reports_.emplace();
  held_up_as_ = std::move(held_up);
  held_up_.clear();
}

void RoundBlame::forget_edges() {
  own_failures_.clear();
  taken_out_.clear();
}

// ---- edges

void RoundBlame::judge() {
  if (!reports_) return;
  const FailureReports reports = *std::exchange(reports_, std::nullopt);
  if (const auto held_up = std::exchange(held_up_as_, {})) return blame_who_held_up(reports, *held_up);
  const bool may_be_stall = failed_after_ >= kLeastStall * turn_.run().dead_after;
  const auto& [reporter, report] = reports.blamed(failed_schedule_, may_be_stall);
  // Who accuses one with whom it had no edge accuses itself.
  const bool had_edge = report.peer && had_edge_with(reporter, *report.peer);
  // A death is no reason: the others exchange without it.
  const bool all_live = members_.is_here(reporter) && (!had_edge || members_.is_here(*report.peer));
  if (failed_schedule_ == Schedule::kDirect && all_live) links_.direct_failed();
  const std::set<IslandPair> seen = seen_at_first_hand(reports);
  for (const IslandPair& edge : seen) (void)edge_failed(edge, /*at_first_hand=*/true);
  if (!seen.empty() || !members_.contains(reporter)) return;
  if (!had_edge) return blame_itself(reporter, report.reason);
  if (!all_live) return;
  // A stall takes long to be found, and its report is first-hand.
  const IslandPair edge = std::minmax(reporter, *report.peer);
  const bool stalled = may_be_stall && report.stalled_after;
  if (stalled) held_up_ = {edge.first, edge.second};
  (void)edge_failed(edge, /*at_first_hand=*/stalled);
}

// Edges that never stood, else those that were silent: of the peer that the first such report names, by whoever names
// it, and those of which both ends say so. What else a member saw may have come of that.
std::set<IslandPair> RoundBlame::seen_at_first_hand(const FailureReports& reports) const {
  for (const FailureReports::Edges& edges : {reports.never_met(), reports.silent()}) {
    std::set<IslandPair> seen;
    std::optional<IslandId> named;
    for (const auto& [reporter, peer] : edges) {
      if (!had_edge_with(reporter, peer) || !members_.is_here(reporter) || !members_.is_here(peer)) continue;
      if (!named) named = peer;
      const bool by_both = std::ranges::find(edges, std::pair(peer, reporter)) != edges.end();
      if (peer == *named || by_both) seen.insert(std::minmax(reporter, peer));
    }
    if (!seen.empty()) return seen;
  }
  return {};
}

bool RoundBlame::is_called_silent(const IslandId& island) const {
  if (!reports_) return false;
  const auto all = reports_->call_silent(island);
  return std::ranges::any_of(all, [&](const IslandId& reporter) { return had_edge_with(reporter, island); });
}

// In the attempt that failed last.
bool RoundBlame::had_edge_with(const IslandId& a, const IslandId& b) const {
  const auto place_of = [&](const IslandId& id) { return std::ranges::find(failed_order_, id, &AttemptMember::id); };
  const auto one = place_of(a), other = place_of(b);
  if (one == failed_order_.end() || other == failed_order_.end() || one == other) return false;
  const auto distance = std::abs(one - other);
  const bool all_meet = failed_schedule_ == Schedule::kDirect || !sums_hop_by_hop(failed_wire_);
  return all_meet || distance == 1 || distance == std::ssize(failed_order_) - 1;
}

bool RoundBlame::avoid_edge(const IslandId& a, const IslandId& b) {
  return links_.avoid_edge({a, b}, parts_.ready_members(), failed_wire_);
}

// Both ends live and their edge does not: the next order avoids it. At once where an end saw that nothing moved, or
// that it never stood; that it was closed may be because the attempt's end was heard of. Where no order can, one end
// sits the round out (ARCHITECTURE.md, Blame).
bool RoundBlame::edge_failed(const IslandPair& edge, bool at_first_hand) {
  const bool too_often = links_.edge_failed(edge, members_, failed_after_);
  if (take_out_who_is_at_fault(edge)) {
    links_.declare_dead(edge.first, edge.second);
    return true;
  }
  if ((at_first_hand || too_often) && avoid_edge(edge.first, edge.second)) return true;
  if (too_often) links_.declare_dead(edge.first, edge.second);
  return false;
}

void RoundBlame::blame_itself(const IslandId& id, const std::string& reason) {
  at_fault_.insert(id);
  if (++own_failures_[id] < EdgeFailures::kTolerated) return;
  parts_.keep_out(id);
  const auto can_go_on = [this](const auto& entry) {
    const RoundPart& part = parts_.of(entry.first);
    return part.ready && part.ready->tokens > 0 && !part.sits_out;
  };
  if (std::ranges::any_of(members_.islands(), can_go_on)) return;
  verdicts_.send_away(id, ErrorCode::kInternal,
                      fmt::format("its average failed {} times and no other island can take the round over: {}",
                                  EdgeFailures::kTolerated, reason));
}

// Which of its ends does it cannot be seen: one sends little, or the other takes little and says so. So it is not tried
// again, as an edge that failed is, but avoided at once, or one end sits out; whoever holds up a second edge as well is
// found by that.
//
// Unless as much came as from a link that is awaited when it is known to be so slow: then it has become so, by its
// owner's limit perhaps, and the next attempt has the time that it needs. Nothing else may ever measure it, for links
// are measured by what comes to its end, and that of two members by nothing else. A liar that says so of its own edge
// each time must say a tenth of what it said before.
//
// Behind one that has the average, and was let have no more, nobody gets more: so edges to those that have it come
// first.
void RoundBlame::blame_who_held_up(const FailureReports& reports, const HeldUp& held_up) {
  const auto is_to_holder = [&](const FailureReports::Wait& wait) {
    return held_up.holders.contains(wait.peer) && !held_up.holders.contains(wait.waiting);
  };
  const auto was_there = [&](const FailureReports::Wait& wait) {
    return had_edge_with(wait.waiting, wait.peer) && members_.is_here(wait.waiting) && members_.is_here(wait.peer);
  };
  auto waits = reports.waits();
  std::erase_if(waits, std::not_fn(was_there));
  // Who is not at the end, and waits for nobody, is late by itself.
  for (const AttemptMember& member : failed_order_) {
    const bool lags = !held_up.holders.empty() && !held_up.holders.contains(member.id) && members_.is_here(member.id);
    const bool waits_for_one = std::ranges::find(waits, member.id, &FailureReports::Wait::waiting) != waits.end();
    if (lags && !waits_for_one && !held_up.laggards_paid) at_fault_.insert(member.id);
  }
  auto worst = std::ranges::find_if(waits, is_to_holder);
  if (worst == waits.end() && held_up.is_overdue) worst = waits.begin();
  if (worst == waits.end()) return;
  // The attempts of other fragments share the link. One that is slow for all is not slow at the end alone.
  const double rate = static_cast<double>(worst->bytes) * turn_.run().fragments / Seconds(held_up.lasted).count();
  const bool may_take_longer = !held_up.laggards_paid && !members_.usual_average();
  if (may_take_longer && links_.has_got_slow(worst->peer, worst->waiting, rate)) return;
  const IslandPair edge = std::minmax(worst->waiting, worst->peer);
  links_.edge_failed(edge, members_, held_up.lasted);
  if (take_out_who_is_at_fault(edge) || !avoid_edge(edge.first, edge.second)) {
    links_.declare_dead(edge.first, edge.second);
  }
  held_up_ = {edge.first, edge.second};
  if (held_up.laggards_paid) held_up_.erase(worst->waiting);
}

// Whoever is an end of failed edges to more islands than may lie: that explains all of them.
bool RoundBlame::take_out_who_is_at_fault(const IslandPair& edge) {
  bool found = false;
  std::set<IslandId> islands;
  for (const auto& [id, island] : members_.islands()) islands.insert(id);
  for (const IslandId& end : {edge.first, edge.second}) {
    if (!links_.is_at_fault(end, islands)) continue;
    found = true;
    at_fault_.insert(end);
    taken_out_.insert(end);
    parts_.keep_out(end);
    if (MeshIsland* island = members_.find(end))
      leave_out_of_round(*island, "its connections to several islands failed");
  }
  return found;
}

// It sits out, and its owner is told why. Who sat out for an edge to it did so for nothing.
void RoundBlame::leave_out_of_round(MeshIsland& island, const std::string& reason) {
  parts_.keep_out(island.id());
  for (const IslandId& id : parts_.sitting_out()) {
    if (links_.is_dead(id, island.id()) && !taken_out_.contains(id)) parts_.let_back(id);
  }
  island.left_out_for = reason;
  turn_.publish(WorkLeftOut{island.id(), parts_.round(), reason});
}

void RoundBlame::leave_out_debtors() {
  std::vector<IslandId> trainers, owing;
  for (const AttemptMember& member : parts_.ready_members()) {
    if (trained(member)) trainers.push_back(member.id);
    if (!trained(member) && members_.budget().owes(member.id)) owing.push_back(member.id);
  }
  std::ranges::copy(members_.debtors(trainers), std::back_inserter(owing));
  for (const IslandId& id : owing) {
    leave_out_of_round(*members_.find(id), fmt::format("the others waited for it for longer than they may; it takes "
                                                       "part again in {:.0f} s",
                                                       members_.seconds_in_debt(id)));
  }
}

// ---- lies

std::vector<IslandId> RoundBlame::likely_liars(const DigestInquiry& inquiry, const OpenAttempt& attempt) {
  const std::set<IslandPair> edges = inquiry.bad_edges();
  links_.bad_edges().add(edges);
  // One that does not show its bytes where most do hides an edge. Where bytes were altered on their way, or may have
  // been, whoever got them is outvoted and innocent.
  const std::vector<IslandId> silent = inquiry.silent(), outvoted = attempt.outvoted();
  for (const auto& [a, b] : edges) implicated_.insert({a, b});
  implicated_.insert(silent.begin(), silent.end());
  implicated_.insert(outvoted.begin(), outvoted.end());
  std::vector<IslandId> likely;
  if (const auto found = culprit()) likely.push_back(*found);
  const bool most_answered = silent.size() * 2 < attempt.live().size();
  culpable_.clear();
  if (most_answered) culpable_ = edges.empty() && silent.empty() ? outvoted : silent;
  const std::vector<IslandId>& likelier = most_answered ? culpable_ : outvoted;
  likely.insert(likely.end(), likelier.begin(), likelier.end());
  for (const auto& [a, b] : edges) likely.insert(likely.end(), {a, b});
  return likely;
}

void RoundBlame::strike_the_outvoted(const std::vector<IslandId>& outvoted) {
  for (const IslandId& id : outvoted) {
    MeshIsland* island = members_.find(id);
    const bool is_proof = culprit() == id || std::ranges::find(culpable_, id) != culpable_.end();
    if (island != nullptr && is_proof) leave_out(*island, "the others hold another average than this island");
  }
}

// Of the bad edges of all rounds. But whoever lies in this one shows in it: two that framed another once do not have it
// blamed for whatever one of them does later.
std::optional<IslandId> RoundBlame::culprit() const {
  const auto found = links_.bad_edges().culprit();
  return found && implicated_.contains(*found) ? found : std::nullopt;
}

void RoundBlame::change_neighbours(const std::set<IslandPair>& bad_edges) {
  bool avoided = false;
  for (const IslandPair& edge : bad_edges) avoided = edge_failed(edge, /*at_first_hand=*/true) || avoided;
  if (!bad_edges.empty() && !avoided) turned_ = !turned_;
}

void RoundBlame::search_for_liar(const std::vector<IslandId>& likely, const std::string& reason) {
  struct Suspect {
    IslandId id;
    std::uint64_t tokens = 0;
    std::uint32_t rounds_accepted = 0;
  };
  std::vector<Suspect> members;
  for (const AttemptMember& member : parts_.ready_members()) {
    members.push_back({member.id, member.tokens, members_.find(member.id)->conduct.rounds_accepted});
  }
  const auto has_trained = [](const Suspect& suspect) { return suspect.tokens > 0; };
  const auto trainers = static_cast<std::size_t>(std::ranges::count_if(members, has_trained));
  const bool may_lose_one = trainers >= 3 && trainers > turn_.run().quorum;
  std::erase_if(members, [&](const Suspect& suspect) { return has_trained(suspect) && !may_lose_one; });
  const auto likelihood = [&](const Suspect& suspect) {
    return std::ranges::find(likely, suspect.id) - likely.begin();
  };
  std::ranges::sort(members, [&](const Suspect& a, const Suspect& b) {
    if (likelihood(a) != likelihood(b)) return likelihood(a) < likelihood(b);
    if (has_trained(a) != has_trained(b)) return has_trained(b);
    if (a.rounds_accepted != b.rounds_accepted) return a.rounds_accepted < b.rounds_accepted;
    return a.id > b.id;
  });
  std::vector<IslandId> suspects;
  suspects.reserve(members.size());
  for (const Suspect& suspect : members) suspects.push_back(suspect.id);
  lies_.failed(suspects);
  lie_ = reason;
}

void RoundBlame::leave_out_suspect(std::vector<AttemptMember>& members) {
  const auto trainers = static_cast<std::size_t>(std::ranges::count_if(members, trained));
  const auto suspect = std::ranges::find(members, lies_.left_out(), &AttemptMember::id);
  // Others may have gone since it was suspected: one alone is checked by nobody.
  const bool may_lose_it =
      suspect != members.end() && (!trained(*suspect) || trainers > std::max(turn_.run().quorum, 2u));
  if (may_lose_it) members.erase(suspect);
  if (!may_lose_it) lies_.spare();
}

// ---- the work itself

// Of the round, and it is told why; whoever gives cause round after round is sent away.
void RoundBlame::leave_out(MeshIsland& island, const std::string& reason) {
  const IslandId id = island.id();
  parts_.leave_out(id);
  island.left_out_for = reason;
  turn_.publish(WorkLeftOut{id, parts_.round(), reason});
  if (++island.conduct.strikes >= kMostStrikes) {
    verdicts_.send_away(
        id, ErrorCode::kInternal,
        fmt::format("its work was left out of {} rounds in a row: {}; check this machine's memory and that it runs "
                    "the run's version of atoll",
                    kMostStrikes, reason));
  }
}

void RoundBlame::leave_out_the_large() {
  std::map<IslandId, double> norms;
  for (const auto& [id, island] : members_.islands()) {
    const RoundPart& part = parts_.of(id);
    const bool trains = part.trains() && island.connected;
    if (trains && part.ready && part.ready->tokens > 0) norms[id] = part.ready->norm_over_steps;
  }
  std::vector<std::pair<IslandId, std::string>> large;
  for (const auto& [id, norm] : norms) {
    std::vector<double> others;
    for (const auto& [other, its_norm] : norms) {
      if (other != id) others.push_back(its_norm);
    }
    if (others.empty()) return;
    const auto limit = trust_.norms(parts_.fragment()).limit(id, std::move(others));
    if (!limit || norm <= *limit) continue;
    large.emplace_back(id,
                       fmt::format("the norm of what it learned in round {} is {:.3g} an inner step, and the others' "
                                   "allow {:.3g}",
                                   round_number(parts_.round().value), norm, *limit));
  }
  if (large.size() == norms.size()) return;
  for (const auto& [id, reason] : large) {
    if (MeshIsland* island = members_.find(id)) leave_out(*island, reason);
  }
}

void RoundBlame::note_accepted(const OpenAttempt& done) {
  for (const AttemptMember& member : done.order()) {
    MeshIsland* island = members_.find(member.id);
    if (island == nullptr || member.tokens == 0 || !parts_.of(member.id).ready) continue;
    if (!done.live().contains(member.id)) continue;
    trust_.norms(parts_.fragment()).accepted(member.id, parts_.of(member.id).ready->norm_over_steps);
    island->conduct.strikes = 0;
    island->left_out_for.clear();
  }
  if (!lies_.left_out()) return;
  MeshIsland* island = members_.find(*lies_.left_out());
  if (island == nullptr) return;
  const IslandId id = island->id();
  const std::string reason =
      fmt::format("{} in round {}, and without this island they did not", lie_, round_number(parts_.round().value));
  // That an attempt passed without it proves nothing: a liar can choose when to lie. What it says of its bytes does.
  const bool is_proof = culprit() == id || std::ranges::find(culpable_, id) != culpable_.end();
  if (is_proof) return leave_out(*island, reason);
  island->left_out_for = reason;
  turn_.publish(WorkLeftOut{id, parts_.round(), reason});
}

}  // namespace atl
