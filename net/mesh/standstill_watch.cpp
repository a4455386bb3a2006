#include "net/mesh/standstill_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "net/base/round_words.h"
namespace atl {
namespace {

constexpr int kRollbacksByPolicy = 2;  // to the same state; then its operator has to look
constexpr std::chrono::seconds kRollbackPause{30};
constexpr std::chrono::seconds kSayAfter{3};  // those who come back at once are not spoken of
constexpr int kLongTimes = 8;                 // as the first trainer took, that the others may take before it is said

}  // namespace

bool StandstillWatch::is_at_hub() const { return state_.committed() == OuterStep{0} && turn_.run().begins_at_hub(); }

bool StandstillWatch::is_in_store() const {
  const auto& agreed = trust_.agreed();
  return agreed && safekeeping_.is_uploaded({state_.committed(), *agreed});
}

// ---- why it does not go on

std::optional<Standstill> StandstillWatch::of_validation() const {
  const auto& spoiled = trust_.spoiled();
  if (!spoiled) return std::nullopt;
  Standstill stop{Standstill::Kind::kSpoiled,
                  fmt::format("the validation loss {} is {:.3f}, far above what it was: more than half of "
                              "the islands found it so",
                              after_round(spoiled->outer_step.value), spoiled->loss_nats)};
  stop.back_to = safekeeping_.newest_kept(trust_.validation().newest_good().value_or(OuterStep{0}));
  if (const auto suspect = trust_.work().suspect()) {
    stop.text += fmt::format("; most in doubt is the work of {}: `atoll hub remove {}` if it is not to be trained on",
                             members_.names({*suspect}), suspect->value);
  }
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
  stop.back_to = safekeeping_.newest_kept(OuterStep{below});
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
        round_number(below), stop.text);
  } else if (verdict == HashAgreement::Verdict::kOpen) {
    stop.kind = Kind::kUndecided;
    stop.text = fmt::format(
        "round {} is committed, and fewer than half of the islands that hold its average have said "
        "which outer state it makes; missing: {}. When they come back the run goes on",
        round_number(below), members_.names(agreement.missing()));
  } else if (nobody) {
    stop.kind = Kind::kLost;
    stop.text = fmt::format(
        "every island that held the average of round {} was removed from the run before another held the state that it "
        "makes",
        round_number(below));
  } else if (is_at_hub()) {
    stop.kind = Kind::kLost;
    stop.text =
        "no island that is here holds the model yet with which the run begins; islands fetch it from the "
        "hub, which takes as long as it is large: if this lasts, look at what they say of it (atoll status)";
  } else if (is_in_store()) {
    stop.kind = Kind::kLost;
    stop.text = fmt::format(
        "no island that is here holds the state {}, the newest that was committed; it is in the run's object store, "
        "from where islands fetch it: if this lasts, look at what they say of it (atoll status)",
        after_round(committed.value));
  } else {
    stop.kind = Kind::kLost;
    stop.text = fmt::format("no island that is here holds the state {}, the newest that was committed; {}",
                            after_round(committed.value), where_it_may_be());
  }
  return stop;
}

// Who held it and is away; else nobody's disk will bring it back by itself.
std::string StandstillWatch::where_it_may_be() const {
  std::set<IslandId> away;
  for (const IslandId& id : state_.last_holders()) {
    if (!members_.is_here(id)) away.insert(id);
  }
  for (const auto& [id, island] : members_.islands()) {
    const auto is_it = [&](const HeldState& held) {
      return held.outer_step == state_.committed() && trust_.state_hash(held.outer_step) == held.state_hash;
    };
    if (!island.connected && std::ranges::any_of(island.durable, is_it)) away.insert(id);
  }
  if (!away.empty()) {
    return fmt::format(
        "those whose disks should have it are waited for: {}. When one of them comes back with its disk "
        "the run goes on",
        members_.names({away.begin(), away.end()}));
  }
  return "all that held it are here, and their disks have it no more. Whoever has a copy of an island's checkpoint "
         "directory elsewhere puts it back and starts that island again";
}

std::string StandstillWatch::waits_for() const {
  const bool waits = unsettled_since_ && turn_.now() - *unsettled_since_ >= kSayAfter;
  if (!waits || standstill_ || !trust_.agreed()) return {};
  // Islands make that one themselves, or fetch it from where it is.
  if (state_.committed() == OuterStep{0} || is_in_store()) return {};
  return fmt::format("no island that is here holds the state {}, the newest that was committed; {}",
                     after_round(state_.committed().value), where_it_may_be());
}

std::optional<Standstill> StandstillWatch::of_lies(const OpenRound& round) const {
  if (!round.blame().is_nobody_left_to_suspect()) return std::nullopt;
  return Standstill{
      Standstill::Kind::kSplitAverage,
      fmt::format("the average of round {} fails again and again ({}), and so few islands train that "
                  "nobody can tell whose fault it is: {}. Remove the one that you trust less (`atoll hub "
                  "remove ISLAND`), or let another island join",
                  round_number(round.round().value), round.blame().lie(), members_.names(round.last_members()))};
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
                  round_number(round.round().value), members_.names(parts.late()))};
}

std::optional<Standstill> StandstillWatch::of_data(const OpenRound& round) const {
  if (!round.parts().lacks_data()) return std::nullopt;
  return Standstill{Standstill::Kind::kNoData,
                    fmt::format("no island gets the data of its part of round {}: look at what they say of it (atoll "
                                "status), at the hub's own copy (atoll hub data) and at the run's mirrors. It is tried "
                                "again twice a minute",
                                round_number(round.round().value))};
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
    if (auto stop = of_data(*round)) return stop;
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

void StandstillWatch::note_since(Standstill::Kind kind) {
  using Kind = Standstill::Kind;
  since_ = turn_.now();
  if (kind == Kind::kLost || kind == Kind::kUndecided) since_ = unsettled_since_.value_or(since_);
  if (kind == Kind::kQuorum) since_ = no_quorum_since_.value_or(since_);
}

void StandstillWatch::settle(const OpenRounds& rounds, bool finished, const std::optional<WantRollback>& dispute) {
  note_times(rounds);
  // What the run goes back for is no standstill, unless it cannot.
  const bool goes_back = dispute && turn_.now() >= rollback_again_;
  std::optional<Standstill> found = finished || goes_back ? std::nullopt : find(rounds);
  const bool begins_again = found && found->back_to == OuterStep{0} && state_.committed().value > 0;
  if (begins_again) {
    found->text +=
        ". No later state is kept by those who are here: `atoll hub rollback --to 0` begins again, and all rounds are "
        "lost";
  } else if (found && found->back_to) {
    found->text += fmt::format(". To go back to the state {}, the newest that is kept: `atoll hub rollback --to {}`",
                               after_round(found->back_to->value), found->back_to->value);
  }
  if (found != standstill_) {
    if (found && !standstill_) note_since(found->kind);
    standstill_ = std::move(found);
    turn_.publish(StandstillChanged{standstill_});
  }
  if (dispute) {
    ask_for(*dispute);
  } else if (standstill_) {
    ask_for_rollback(*standstill_);
  }
  notify_islands();
}

// ---- the way back

void StandstillWatch::rollback_failed(OuterStep to) {
  wants_rollback_ = false;
  if (rollbacks_[to] > 0) --rollbacks_[to];
  rollback_again_ = turn_.now() + kRollbackPause;
}

void StandstillWatch::ask_for_rollback(const Standstill& standstill) {
  if (turn_.run().when_lost != WhenLost::kRollBack || !standstill.back_to) return;
  if (state_.still_waits()) return;  // who keeps a newer one may still come
  if (standstill.kind == Standstill::Kind::kLost && (is_in_store() || is_at_hub())) return;  // islands fetch it
  const OuterStep to = *standstill.back_to;
  const std::uint32_t undone = state_.committed().value - to.value;
  if (undone > kMostRoundsUndone || rollbacks_[to] >= kRollbacksByPolicy) return;
  if (ask_for({to, standstill.text})) ++rollbacks_[to];
}

bool StandstillWatch::ask_for(const WantRollback& rollback) {
  if (wants_rollback_ || turn_.now() < rollback_again_) return false;
  wants_rollback_ = true;
  turn_.act(rollback);
  return true;
}

// What each island's owner is to know: why the run stands still, who is waited for, or why its own work was left out.
void StandstillWatch::notify_islands() {
  const std::string waits = waits_for();
  for (auto& [id, island] : members_.islands()) {
    if (!island.connected) continue;
    const std::string& text = standstill_ ? standstill_->text : waits.empty() ? island.left_out_for : waits;
    if (text == island.noticed) continue;
    island.noticed = text;
    turn_.send(id, HubNotice{text});
  }
}

}  // namespace atl
