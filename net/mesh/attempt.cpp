#include "net/mesh/attempt.h"

#include <algorithm>

namespace atl {

OpenAttempt::OpenAttempt(Attempt number, std::vector<AttemptMember> order) : number_(number), order_(std::move(order)) {
  for (const AttemptMember& member : order_) live_.insert(member.id);
}

void OpenAttempt::have(const IslandId& island, const std::string& digest) {
  if (live_.contains(island)) digests_[island] = digest;
}

std::size_t OpenAttempt::how_many_have_it() const { return live_.size() - still_averaging().size(); }

std::vector<IslandId> OpenAttempt::still_averaging() const {
  std::vector<IslandId> islands;
  for (const IslandId& island : live_) {
    if (!digests_.contains(island)) islands.push_back(island);
  }
  return islands;
}

template <class Holds>
bool OpenAttempt::most_trainers(const Holds& holds, std::size_t liars) const {
  std::size_t all = 0, those = 0;
  for (const AttemptMember& member : order_) {
    if (member.tokens == 0) continue;
    ++all;
    if (live_.contains(member.id) && holds(member.id)) ++those;
  }
  return those * 2 > all + liars;
}

bool OpenAttempt::most_trainers_live() const {
  return most_trainers([](const IslandId&) { return true; }, 0);
}

bool OpenAttempt::most_trainers_have_it() const {
  return most_trainers([this](const IslandId& island) { return digests_.contains(island); }, 0);
}

OpenAttempt::Outcome OpenAttempt::outcome() const {
  if (live_.empty()) return Outcome::kDeserted;
  const auto has_digest = [this](const IslandId& island) { return digests_.contains(island); };
  if (!std::ranges::all_of(live_, has_digest)) return Outcome::kPending;
  const std::string& first = digests_.at(*live_.begin());
  const bool same = std::ranges::all_of(live_, [&](const IslandId& island) { return digests_.at(island) == first; });
  return same ? Outcome::kAgreed : Outcome::kDiffer;
}

std::string OpenAttempt::digest() const { return digests_.at(*live_.begin()); }

bool OpenAttempt::holds(const std::string& digest) const {
  return std::ranges::any_of(live_, [&](const IslandId& island) { return holds(island, digest); });
}

bool OpenAttempt::holds(const IslandId& island, const std::string& digest) const {
  const auto found = digests_.find(island);
  return found != digests_.end() && found->second == digest;
}

bool OpenAttempt::most_members_hold(const std::string& digest) const {
  const auto holds_it = [&](const IslandId& island) { return holds(island, digest); };
  return 2 * static_cast<std::size_t>(std::ranges::count_if(live_, holds_it)) > order_.size();
}

std::optional<std::string> OpenAttempt::held_by_most(std::size_t liars) const {
  for (const auto& [first, digest] : digests_) {
    const auto holds_it = [&](const IslandId& island) { return holds(island, digest); };
    if (most_trainers(holds_it, liars)) return digest;
  }
  return std::nullopt;
}

std::vector<IslandId> OpenAttempt::outvoted() const {
  std::map<std::string, std::size_t> votes;
  std::size_t voters = 0;
  const auto lives = [this](const AttemptMember& member) { return live_.contains(member.id); };
  const bool trainers_vote =
      std::ranges::any_of(order_, [&](const AttemptMember& member) { return trained(member) && lives(member); });
  for (const AttemptMember& member : order_) {
    if (!lives(member) || (trainers_vote && !trained(member))) continue;
    ++votes[digests_.at(member.id)];
    ++voters;
  }
  const auto wins = [&](const auto& entry) { return entry.second * 2 > voters; };
  const auto winner = std::ranges::find_if(votes, wins);
  std::vector<IslandId> islands;
  if (winner == votes.end()) return islands;
  for (const IslandId& island : live_) {
    if (digests_.at(island) != winner->first) islands.push_back(island);
  }
  return islands;
}

Clock::duration AnswerTimes::came(Clock::time_point now) {
  if (!most_at_ && 2 * ++came_ > asked_) most_at_ = now;
  return most_at_ ? now - *most_at_ : Clock::duration{};
}

KeptBuckets::KeptBuckets(Attempt of, const std::set<IslandId>& members) : of_(of) {
  for (const IslandId& island : members) reports_[island];
}

void KeptBuckets::report(const IslandId& island, const std::vector<bool>& whole_buckets) {
  const auto found = reports_.find(island);
  if (found != reports_.end() && !found->second) found->second = whole_buckets;
}

bool KeptBuckets::awaits(const IslandId& island) const {
  const auto found = reports_.find(island);
  return found != reports_.end() && !found->second;
}

bool KeptBuckets::complete() const {
  return std::ranges::all_of(reports_, [](const auto& entry) { return entry.second.has_value(); });
}

std::vector<bool> KeptBuckets::held_by(const std::vector<AttemptMember>& members) const {
  std::optional<std::vector<bool>> held;
  for (const AttemptMember& member : members) {
    const auto found = reports_.find(member.id);
    if (found == reports_.end() || !found->second) return {};
    const std::vector<bool>& whole = *found->second;
    if (!held) held = whole;
    if (whole.size() != held->size()) return {};  // they do not speak of the same model
    for (std::size_t bucket = 0; bucket < whole.size(); ++bucket) {
      if (!whole[bucket]) (*held)[bucket] = false;
    }
  }
  if (!held || std::ranges::find(*held, true) == held->end()) return {};
  return *held;
}

void FailureReports::add(const IslandId& reporter, IslandAttemptFailed report) {
  const auto same = [&](const auto& entry) { return entry.first == reporter; };
  if (std::ranges::none_of(reports_, same)) reports_.emplace_back(reporter, std::move(report));
}

FailureReports::Edges FailureReports::never_met() const { return edges(&IslandAttemptFailed::never_met); }

FailureReports::Edges FailureReports::silent() const { return edges(&IslandAttemptFailed::silent); }

FailureReports::Edges FailureReports::edges(bool IslandAttemptFailed::*found) const {
  Edges edges;
  for (const auto& [reporter, says] : reports_) {
    if (says.peer && says.*found) edges.emplace_back(reporter, *says.peer);
  }
  return edges;
}

std::vector<IslandId> FailureReports::call_silent(const IslandId& island) const {
  std::vector<IslandId> reporters;
  for (const auto& [reporter, says] : reports_) {
    if (says.silent && says.peer == island) reporters.push_back(reporter);
  }
  return reporters;
}

const std::pair<IslandId, IslandAttemptFailed>& FailureReports::blamed(Schedule schedule, bool may_be_stall) const {
  const auto* blamed = &reports_.front();
  if (!blamed->second.stalled_after || schedule == Schedule::kDirect || !may_be_stall) return *blamed;
  for (const auto& entry : reports_) {
    if (entry.second.stalled_after && *entry.second.stalled_after < *blamed->second.stalled_after) blamed = &entry;
  }
  return *blamed;
}

std::vector<FailureReports::Wait> FailureReports::waits() const {
  std::vector<Wait> waits;
  for (const auto& [reporter, says] : reports_) {
    if (says.peer && says.stalled_after) waits.push_back({reporter, *says.peer, *says.stalled_after});
  }
  std::ranges::stable_sort(waits, {}, &Wait::bytes);
  return waits;
}

}  // namespace atl
