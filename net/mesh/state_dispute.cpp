#include "net/mesh/state_dispute.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/base/round_words.h"
#include "net/mesh/edge_failures.h"

namespace atl {

// The honest are a majority of its voters where these are more than twice as many as may lie.
bool StateDispute::may_be_a_lie() const {
  const HashAgreement& agreement = trust_.agreement();
  const auto verdict = agreement.verdict();
  if (verdict != HashAgreement::Verdict::kOpen && verdict != HashAgreement::Verdict::kSplit) return false;
  return agreement.voters().size() <= 2 * most_liars(members_.islands().size());
}

std::optional<WantRollback> StateDispute::settle() {
  const OuterStep committed = state_.committed();
  const bool is_disputed = may_be_a_lie();
  if (std::exchange(of_, committed) != committed || !is_disputed) {
    open_since_.reset();
    waits_since_.reset();
  }
  if (!is_disputed || state_.still_waits()) return std::nullopt;
  const HashAgreement& agreement = trust_.agreement();
  if (agreement.verdict() == HashAgreement::Verdict::kOpen && may_wait()) return std::nullopt;
  const auto back_to = safekeeping_.newest_kept_by(most_liars(members_.islands().size()) + 1);
  if (!back_to || committed.value - back_to->value > kMostRoundsUndone) return std::nullopt;
  return WantRollback{*back_to, fmt::format("those that made the state {} do not agree on it, and are too few to tell "
                                            "who is wrong: {}",
                                            after_round(committed.value),
                                            members_.names({agreement.voters().begin(), agreement.voters().end()}))};
}

// For the first vote as long as for any state; then for each that is missing as long as its account lets it.
bool StateDispute::may_wait() {
  const auto now = turn_.now();
  if (!open_since_) open_since_ = now;
  const HashAgreement& agreement = trust_.agreement();
  if (agreement.votes().empty()) return now - *open_since_ < turn_.run().lost_after;
  const Clock::duration waited = now - std::exchange(waits_since_, now).value_or(now);
  const std::vector<IslandId> missing = agreement.missing();
  for (const IslandId& id : missing) members_.budget().charge(id, waited);
  return std::ranges::none_of(missing, [this](const IslandId& id) { return members_.budget().is_spent(id); });
}

void StateDispute::part_makers() {
  if (!may_be_a_lie()) return;
  const HashAgreement& agreement = trust_.agreement();
  const Clock::duration cost =
      members_.usual_inner_phase().value_or(Clock::duration{}) + members_.usual_average().value_or(Clock::duration{});
  const auto vote_of = [&](const IslandId& id) {
    const auto found = agreement.votes().find(id);
    return found == agreement.votes().end() ? std::string() : found->second;
  };
  for (const IslandId& one : agreement.voters()) {
    for (const IslandId& other : agreement.voters()) {
      if (one >= other || vote_of(one) == vote_of(other)) continue;
      (void)links_.edge_failed({one, other}, members_, cost);
      links_.declare_dead(one, other);
    }
  }
}

}  // namespace atl
