#include "net/mesh/standstill_watch.h"

#include <fmt/format.h>

#include <algorithm>

namespace atl {
namespace {

constexpr int kRollbacksByPolicy = 2;  // to the same state; then its operator has to look
constexpr std::chrono::seconds kRollbackPause{30};
constexpr int kLongTimes = 8;  // as the first trainer took, that the others may take before it is said

}  // namespace

// ---- what islands keep

std::optional<OuterStep> StandstillWatch::newest_kept(OuterStep at_most) const {
  std::optional<OuterStep> newest;
  for (const auto& [id, island] : members_.islands()) {
    if (!island.connected) continue;
    for (const HeldState& held : island.durable) {
      const bool is_the_runs = trust_.state_hash(held.outer_step) == held.state_hash;
      if (is_the_runs && held.outer_step <= at_most && (!newest || held.outer_step > *newest)) newest = held.outer_step;
    }
  }
  // What the run began with can be made again; but before anybody is here nobody knows what there is.
  if (!newest && members_.is_anybody_here() && trust_.state_hash(OuterStep{0})) return OuterStep{0};
  return newest;
}

// ---- why it does not go on

std::optional<Standstill> StandstillWatch::of_validation() const {
  const auto& spoiled = trust_.spoiled();
  if (!spoiled) return std::nullopt;
  Standstill stop{
      Standstill::Kind::kSpoiled,
      fmt::format("the validation loss of outer step {} is {:.3f}, far above what it was: more than half of "
                  "the islands found it so",
                  spoiled->outer_step.value, spoiled->loss_nats)};
  stop.back_to = newest_kept(trust_.validation().newest_good().value_or(OuterStep{0}));
  stop.text += fmt::format("; `atoll hub rollback --to {}` goes on with it as it is", state_.committed().value);
  return stop;
}

// While the committed state is not known, or nobody that is here holds it: after RunConfig::lost_after.
std::optional<Standstill> StandstillWatch::of_state() const {
  using Kind = Standstill::Kind;
  const HashAgreement& agreement = trust_.agreement();
  const HashAgreement::Verdict verdict = agreement.verdict();
  const bool split = verdict == HashAgreement::Verdict::kSplit;
  const bool nobody = verdict == HashAgreement::Verdict::kNobody;
  const bool waited = unsettled_since_ && turn_.now() - *unsettled_since_ >= turn_.run().lost_after;
  if (!split && !nobody && !waited) return std::nullopt;
  Standstill stop;
  const OuterStep committed = state_.committed();
  const std::uint32_t below = committed.value > 0 ? committed.value - 1 : 0;
  stop.back_to = newest_kept(OuterStep{below});
  if (split) {
    stop.kind = Kind::kSplitState;
    std::map<std::string, std::vector<IslandId>> camps;
    for (const auto& [island, hash] : agreement.votes()) camps[hash].push_back(island);
    for (const auto& [hash, islands] : camps) {
      stop.text +=
          fmt::format("{}{} say {}...", stop.text.empty() ? "" : ", ", members_.names(islands), hash.substr(0, 8));
    }
    stop.text = fmt::format(
        "the islands of round {} computed different outer states from the same average and none of "
        "them is held by more than half ({}): whoever is wrong has to go: `atoll hub remove ISLAND`",
        below, stop.text);
  } else if (verdict == HashAgreement::Verdict::kOpen) {
    stop.kind = Kind::kUndecided;
    stop.text = fmt::format(
        "round {} is committed, and fewer than half of the islands that hold its average have said "
        "which outer state it makes; missing: {}. When they come back the run goes on",
        below, members_.names(agreement.missing()));
  } else if (nobody) {
    stop.kind = Kind::kLost;
    stop.text = fmt::format(
        "every island that held the average of round {} was removed from the run before another held outer step {}",
        below, committed.value);
  } else {
    stop.kind = Kind::kLost;
    stop.text = fmt::format(
        "no island that is here holds outer step {}, the newest that was committed; if one that does "
        "comes back, the run goes on",
        committed.value);
  }
  return stop;
}

std::optional<Standstill> StandstillWatch::of_lies(const OpenRound& round) const {
  if (!round.blame().is_nobody_left_to_suspect()) return std::nullopt;
  return Standstill{Standstill::Kind::kSplitAverage,
                    fmt::format("the average of round {} fails again and again ({}), and so few islands train that "
                                "nobody can tell whose fault it is: {}. Remove the one that you trust less (`atoll hub "
                                "remove ISLAND`), or let another island join",
                                round.round().value, round.blame().lie(), members_.names(round.last_members()))};
}

// Half of the trainers or fewer are ready, and have waited for the others so many times as long as it took them.
std::optional<Standstill> StandstillWatch::of_stragglers(const OpenRound& round) const {
  const RoundParts& parts = round.parts();
  const auto& first_ready = parts.first_ready();
  if (!first_ready || parts.grace_ends() || round.runs_attempt()) return std::nullopt;
  const RunConfig& run = turn_.run();
  const auto usual = std::max<Clock::duration>(*first_ready - parts.began(), run.straggler_grace);
  if (turn_.now() - *first_ready < std::max<Clock::duration>(kLongTimes * usual, run.lost_after)) return std::nullopt;
  return Standstill{
      Standstill::Kind::kStragglers,
      fmt::format("the trainers of round {} that are ready are not most of them, and the others take "
                  "far longer: {}. It goes on when they are ready; if they hang: `atoll hub remove ISLAND`",
                  round.round().value, members_.names(parts.late()))};
}

std::optional<Standstill> StandstillWatch::of_quorum(const OpenRounds& rounds) const {
  if (!no_quorum_since_ || turn_.now() - *no_quorum_since_ < turn_.run().lost_after) return std::nullopt;
  std::vector<IslandId> out;
  if (!rounds.empty()) out = rounds.begin()->second->parts().sitting_out();
  const std::string sitting_out =
      out.empty() ? "" : fmt::format(" (here, but left out of this round: {})", members_.names(out));
  return Standstill{Standstill::Kind::kQuorum,
                    fmt::format("fewer than {} islands train, which is this run's quorum; it goes on when "
                                "more are there{}",
                                turn_.run().quorum, sitting_out)};
}

// Of several open rounds the oldest comes first: the others wait for it.
std::optional<Standstill> StandstillWatch::find(const OpenRounds& rounds) const {
  if (auto stop = of_validation()) return stop;
  if (auto stop = of_state()) return stop;
  for (const auto& [number, round] : rounds) {
    if (auto stop = of_lies(*round)) return stop;
  }
  for (const auto& [number, round] : rounds) {
    if (auto stop = of_stragglers(*round)) return stop;
  }
  return of_quorum(rounds);
}

void StandstillWatch::note_times(const OpenRounds& rounds) {
  const auto holds = [this](const IslandId& id) { return members_.is_here(id); };
  const bool settled = trust_.agreed() && std::ranges::any_of(trust_.agreement().holders(), holds);
  if (settled || !members_.is_anybody_here() || state_.is_last_round_done()) {
    unsettled_since_.reset();
  } else if (!unsettled_since_) {
    unsettled_since_ = turn_.now();
  }
  const std::size_t trainers =
      rounds.empty() ? members_.islands().size() : rounds.begin()->second->parts().count_trainers();
  const bool short_of_islands = turn_.run().quorum > 1 && settled && trainers < turn_.run().quorum;
  if (!short_of_islands) {
    no_quorum_since_.reset();
  } else if (!no_quorum_since_) {
    no_quorum_since_ = turn_.now();
  }
}

void StandstillWatch::settle(const OpenRounds& rounds, bool finished) {
  note_times(rounds);
  std::optional<Standstill> found = finished ? std::nullopt : find(rounds);
  if (found && found->back_to) {
    found->text +=
        fmt::format(". To go back to outer step {}, the newest that islands keep: `atoll hub rollback --to {}`",
                    found->back_to->value, found->back_to->value);
  }
  if (found != standstill_) {
    standstill_ = std::move(found);
    turn_.publish(StandstillChanged{standstill_});
  }
  if (standstill_) ask_for_rollback(*standstill_);
  notify_islands();
}

// ---- the way back

void StandstillWatch::rollback_failed(OuterStep to) {
  wants_rollback_ = false;
  --rollbacks_[to];
  rollback_again_ = turn_.now() + kRollbackPause;
}

void StandstillWatch::ask_for_rollback(const Standstill& standstill) {
  if (turn_.run().when_lost != WhenLost::kRollBack || !standstill.back_to || wants_rollback_) return;
  if (turn_.now() < rollback_again_) return;
  if (state_.still_waits()) return;  // who keeps a newer one may still come
  const OuterStep to = *standstill.back_to;
  const std::uint32_t undone = state_.committed().value - to.value;
  if (undone > kMostRoundsUndone || rollbacks_[to] >= kRollbacksByPolicy) return;
  ++rollbacks_[to];
  wants_rollback_ = true;
  turn_.act(WantRollback{to, standstill.text});
}

// What each island's owner is to know: why the run stands still, or why its own work was left out.
void StandstillWatch::notify_islands() {
  for (auto& [id, island] : members_.islands()) {
    if (!island.connected) continue;
    const std::string& text = standstill_ ? standstill_->text : island.left_out_for;
    if (text == island.noticed) continue;
    island.noticed = text;
    turn_.send(id, HubNotice{text});
  }
}

}  // namespace atl
