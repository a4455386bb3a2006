// RoundCoordinator: averaging the open round, attempt after attempt.
#include <fmt/format.h>

#include <algorithm>

#include "net/mesh/ring_choice.h"
#include "net/mesh/round_coordinator.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kFirstRetryDelay{500};
constexpr std::chrono::milliseconds kLongestRetryDelay{5'000};
constexpr std::chrono::seconds kStandstillRetryDelay{30};  // when nobody can tell whose fault it is
// The norm of an average may exceed the mean of its parts' norms by what quantising adds; with error feedback, by what
// earlier rounds still owe, too.
constexpr double kNormSlack = 1.1, kNormSlackWithFeedback = 3;

}  // namespace

std::vector<AttemptMember> RoundCoordinator::ready_members() const {
  std::vector<AttemptMember> members;
  for (const auto& [id, island] : islands_) {
    if (island.part == MeshIsland::Part::kNone || island.sits_out || !island.connected || !island.ready) continue;
    members.push_back({id, island.entry.address, island.ready->tokens});
  }
  return members;
}

std::size_t RoundCoordinator::live_trainers() const {
  const auto trained = [this](const AttemptMember& member) {
    return member.tokens > 0 && attempt_->live().contains(member.id);
  };
  return static_cast<std::size_t>(std::ranges::count_if(attempt_->order(), trained));
}

bool RoundCoordinator::is_somebody_awaited() const {
  if (!expected_back_.empty()) return true;
  for (const auto& [id, island] : islands_) {
    if (island.part == MeshIsland::Part::kNone || island.sits_out) continue;
    if (island.connected && island.ready) continue;
    if (now_ < island.awaited_until || (island.connected && island.part == MeshIsland::Part::kTrainer)) return true;
  }
  return false;
}

void RoundCoordinator::open_attempt() {
  if (attempt_ || now_ < retry_at_ || !agreement_.agreed() || spoiled_) return;
  if (restored_ && now_ < *expected_back_until_) return;  // somebody may know more than its backup
  if (kept_ && !kept_->complete() && now_ < kept_due_) return;
  for (auto& [id, island] : islands_) {  // connected, and answers nothing
    if (stalled_attempts_ > 0 && kept_ && kept_->awaits(id)) island.sits_out = true;
  }
  const bool waits = is_somebody_awaited();
  if (waits && (!grace_ends_ || now_ < *grace_ends_)) return;
  leave_out_the_large();
  std::vector<AttemptMember> members = ready_members();
  const auto trained = [](const AttemptMember& member) { return member.tokens > 0; };
  const auto trainers = static_cast<std::size_t>(std::ranges::count_if(members, trained));
  if (trainers == 0 || trainers < run_.quorum) return;
  const auto suspect = std::ranges::find(members, lies_.left_out(), &AttemptMember::id);
  // Others may have gone since it was suspected: one alone is checked by nobody.
  const bool may_lose_it = suspect != members.end() && (!trained(*suspect) || trainers > std::max(run_.quorum, 2u));
  if (may_lose_it) members.erase(suspect);
  if (!may_lose_it) lies_.spare();
  RingChoice ring = choose_ring(std::move(members), links_, last_order_, now_);
  if (!ring.sits_out.empty()) {
    for (const IslandId& id : ring.sits_out) find(id)->sits_out = true;
    return open_attempt();
  }
  // As chosen, not as turned: the next choice compares with it.
  last_order_.clear();
  for (const AttemptMember& member : ring.order) last_order_.push_back(member.id);
  if (turned_) std::ranges::reverse(ring.order);
  begin_attempt(std::move(ring.order));
}

void RoundCoordinator::begin_attempt(std::vector<AttemptMember> order) {
  last_attempt_ = Attempt{last_attempt_.value + 1};
  attempt_.emplace(last_attempt_, std::move(order));
  average_due_.reset();
  stall_due_.reset();
  actions_.push_back(PersistAttempt{committed_, last_attempt_});
  HubAttempt message{committed_, last_attempt_, attempt_->order()};
  message.wire = wire_for(message.order);
  message.edge_bytes_per_second = known_rates(message.order, links_, now_);
  message.norm_limit = norm_limit(message.order);
  const bool same_wire = message.wire == std::exchange(last_wire_, message.wire);
  if (kept_ && same_wire) message.final_buckets = kept_->held_by(message.order);
  attempt_keeps_buckets_ = std::ranges::find(message.final_buckets, true) != message.final_buckets.end();
  kept_.reset();
  if (roster_changed_) send_roster();  // where the members are
  for (const AttemptMember& member : attempt_->order()) send(member.id, message);
}

// ||sum of w g|| <= sum of w ||g||, by what each says of its own. Buckets kept from an attempt with other members make
// no difference: the largest part bounds each.
double RoundCoordinator::norm_limit(const std::vector<AttemptMember>& members) const {
  if (run_.norm_bound == 0) return 0;
  const double tokens_a_step = double{1} * run_.sequences_per_step * run_.sequence_length;
  double weighted = 0, tokens = 0, largest = 0;
  for (const AttemptMember& member : members) {
    const auto found = islands_.find(member.id);
    if (member.tokens == 0 || found == islands_.end() || !found->second.ready) continue;
    const auto own_tokens = static_cast<double>(member.tokens);
    const double norm = found->second.ready->norm_over_steps * own_tokens / tokens_a_step;
    weighted += own_tokens * norm;
    tokens += own_tokens;
    largest = std::max(largest, norm);
  }
  if (tokens == 0) return 0;
  const double slack = feeds_errors_back(run_.wire) ? kNormSlackWithFeedback : kNormSlack;
  return slack * (kept_ ? largest : weighted / tokens);
}

// Below 8 bits everybody dials every owner of a chunk. Where a member cannot be dialled, the ring sums hop by hop.
WireFormat RoundCoordinator::wire_for(const std::vector<AttemptMember>& members) const {
  const auto hidden = [this](const AttemptMember& member) { return !links_.dialable(member.id); };
  const bool passes_sums_on = !sums_hop_by_hop(run_.wire) && std::ranges::any_of(members, hidden);
  return passes_sums_on ? WireFormat::kInt8Block : run_.wire;
}

// It is lost to the attempt that runs, and nobody waits for what it has to say of the last one.
void RoundCoordinator::leave_attempt(const IslandId& island) {
  if (kept_) kept_->lose(island);
  if (inquiry_) inquiry_->lose(island);
  if (!attempt_ || !attempt_->live().contains(island)) return;
  // Who comes and goes all the time lets no attempt come to its end.
  if (++lost_attempts_[island] >= kMostLostAttempts) find(island)->sits_out = true;
  attempt_->lose(island);
  settle_attempt();
}

void RoundCoordinator::settle_attempt() {
  if (!attempt_ || inquiry_) return;
  const OpenAttempt::Outcome outcome = attempt_->outcome();
  // Those that are left commit nothing alone where most were lost: that may be a liar's doing. They average anew.
  const bool enough = attempt_->most_trainers_live() && live_trainers() >= run_.quorum;
  if (outcome == OpenAttempt::Outcome::kAgreed && enough) return commit();
  if (attempt_->has_lost_a_member()) {
    std::string lost;
    for (const AttemptMember& member : attempt_->order()) {
      if (!attempt_->live().contains(member.id)) lost += (lost.empty() ? "" : ", ") + member.id.value;
    }
    return fail_attempt(lost + " was lost", {});
  }
  if (outcome == OpenAttempt::Outcome::kDiffer) inquire();
}

// A member that others have finished with, and that neither has the average nor says why, does not hold them up for
// ever. Where those that have finished are not most, the attempt is given up, and whoever does not even answer that
// sits out (open_attempt).
void RoundCoordinator::leave_laggards_behind() {
  if (!attempt_ || inquiry_) return;
  if (!average_due_ && stall_due_ && now_ >= *stall_due_) {
    ++stalled_attempts_;
    return fail_attempt("most of its members do not come to its end", {});
  }
  if (!average_due_ || now_ < *average_due_) return;
  const std::vector<IslandId> laggards = attempt_->still_averaging();
  for (const IslandId& id : laggards) {
    attempt_->lose(id);
    send(id, HubAbort{committed_, attempt_->number(), "the others have finished long ago"});
  }
  average_due_.reset();
  settle_attempt();
  for (const IslandId& id : laggards) start_recovering(*find(id));
}

void RoundCoordinator::fail_attempt(const std::string& reason, Clock::duration delay) {
  for (const IslandId& id : attempt_->live()) send(id, HubAbort{committed_, attempt_->number(), reason});
  publish(AttemptFailed{committed_, attempt_->number(), reason});
  kept_.emplace(attempt_->number(), attempt_->live());
  failed_order_ = attempt_->order();
  kept_due_ = now_ + run_.dead_after;
  failure_.reset();
  attempt_.reset();
  inquiry_.reset();
  retry_at_ = now_ + (lies_.exhausted() ? Clock::duration(kStandstillRetryDelay) : delay);
}

// The first failure is retried at once: most are a death that the hub hears of a moment later.
Clock::duration RoundCoordinator::retry_delay() const {
  if (reported_failures_ <= 1) return {};
  const int doublings = std::min(reported_failures_ - 2, 8);
  return std::min<Clock::duration>(kFirstRetryDelay * (1 << doublings), kLongestRetryDelay);
}

}  // namespace atl
