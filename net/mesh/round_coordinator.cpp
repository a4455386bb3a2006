#include "net/mesh/round_coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "net/base/round_words.h"
namespace atl {
namespace {

constexpr std::chrono::seconds kEndTimeout{60};  // for the last reports and what is asked of the last state

}  // namespace

RoundCoordinator::RoundCoordinator(RunConfig run, const CoordinatorMemory& memory, CommitSigner sign,
                                   std::vector<std::int64_t> fragment_numels)
    : turn_(std::move(run), std::move(fragment_numels)),
      members_(turn_),
      links_(turn_),
      trust_(turn_, memory),
      state_(turn_, memory, std::move(sign)),
      inner_(turn_, members_, links_, trust_, state_, memory),
      safekeeping_(turn_, members_, trust_, state_, memory),
      recovery_(turn_, members_, trust_, state_, safekeeping_, *this),
      dispute_(turn_, members_, links_, trust_, state_, safekeeping_),
      standstill_(turn_, members_, trust_, state_, safekeeping_),
      advice_(turn_, members_, links_) {
  turn_.set_decay(memory.decay);
  turn_.set_mixture(memory.mixture);
  resume(memory);
}

// The rounds that were open go on, with those who worked on them. A round overlaps the one before from the first
// attempt at that on; leases of others are of before a rollback, and free.
void RoundCoordinator::resume(const CoordinatorMemory& memory) {
  bool may_overlap = true;
  for (const BegunRound& begun : memory.begun) {
    const std::uint32_t place = static_cast<std::uint32_t>(rounds_.size());
    const bool is_next = begun.round.value == state_.committed().value + place;
    if (is_next && place < turn_.run().fragments && may_overlap) {
      auto round = std::make_unique<OpenRound>(begun.round, surroundings(), begun.last_attempt);
      round->parts().expect(begun.leases);
      if (const OpenRound* before = find_round_before(begun.round)) round->parts().follow(&before->parts());
      rounds_.emplace(begun.round, std::move(round));
      may_overlap = begun.last_attempt.value > 0;
    } else {
      for (const IslandLease& lease : begun.leases) inner_.leases().give_back(lease.range);
    }
  }
  if (!rounds_.empty() || !memory.last_commit) return;
  std::set<IslandId> members;
  for (const AttemptMember& member : memory.last_commit->members) members.insert(member.id);
  inner_.await(members);
}

RoundCoordinator::Actions RoundCoordinator::next(const CoordinatorEvent& event, Clock::time_point now) {
  turn_.begin(now);
  state_.begin_waiting();
  members_.budget().save(now, members_.count_here());
  if (!std::exchange(began_, true)) for_each_round([](OpenRound& round) { round.parts().resume(); });
  std::visit([this](const auto& e) { on(e); }, event);
  if (!finished_) {
    bury_the_silent();
    part_from_the_missed();
    settle();
  }
  closed_.clear();
  return turn_.take();
}

RoundCoordinator::Phase RoundCoordinator::phase() const {
  if (finished_) return Phase::kFinished;
  if (standstill()) return Phase::kStandstill;
  if (is_any_averaged()) return Phase::kSyncing;
  return round_open() ? Phase::kTraining : Phase::kWaiting;
}

OpenRound* RoundCoordinator::find_round(OuterStep round) const {
  const auto found = rounds_.find(round);
  return found == rounds_.end() ? nullptr : found->second.get();
}

OpenRound* RoundCoordinator::find_round_before(OuterStep round) const {
  return round.value == 0 ? nullptr : find_round(OuterStep{round.value - 1});
}

bool RoundCoordinator::is_any_averaged() const {
  return std::ranges::any_of(rounds_, [](const auto& entry) { return entry.second->averages(); });
}

// What the state of things now calls for, whatever event led there.
void RoundCoordinator::settle() {
  members_.send_roster_when_due();
  compare_hashes();
  recovery_.settle();
  for_each_round([](OpenRound& round) { round.settle_attempt(); });
  settle_rounds();
  inner_.probe_links(is_any_averaged());
  advice_.settle(rounds_.empty() ? nullptr : rounds_.rbegin()->second.get(), is_any_averaged());
  settle_end();
  standstill_.settle(rounds_, finished_, finished_ ? std::nullopt : dispute_.settle());
  safekeeping_.settle();
}

// The open rounds and, where it is time, the next, which begins while they are averaged.
void RoundCoordinator::settle_rounds() {
  for (OuterStep number = state_.committed(); number.value < state_.committed().value + turn_.run().fragments;
       ++number.value) {
    OpenRound* round = find_round(number);
    if (round == nullptr) {
      if (!inner_.may_begin(number, find_round_before(number))) return;
      round = &begin_round(number);
    }
    round->settle_parts();
  }
}

OpenRound& RoundCoordinator::begin_round(OuterStep number) {
  const OpenRound* before = find_round_before(number);
  auto& round = rounds_[number] = std::make_unique<OpenRound>(number, surroundings());
  if (before != nullptr) round->parts().follow(&before->parts());
  begin_mixture(number);
  inner_.begin(*round, before);
  return *round;
}

void RoundCoordinator::compare_hashes() {
  trust_.compare_hashes(state_.committed());
  if (trust_.agreed()) recover_those_who_train(trust_.agreement().dissenters());
}

void RoundCoordinator::recover_those_who_train(const std::vector<IslandId>& islands) {
  for (const IslandId& id : islands) {
    const MeshIsland* island = members_.find(id);
    if (island != nullptr && island->standing == MeshIsland::Standing::kTraining) start_recovering(id);
  }
}

void RoundCoordinator::act_on_validation(const IslandId& by, ValidationWatch::Outcome outcome) {
  const auto found = trust_.learn(by, outcome);
  // Whoever tries tasks on the last state says that it is ready once it has told what they came to.
  if (trust_.evaluation().asks()) return;
  if (found && last_validator_ == by && found->outer_step == state_.committed()) finish();
}

// ---- verdicts

void RoundCoordinator::start_recovering(const IslandId& id) {
  if (!members_.contains(id)) return;
  for_each_round([&](OpenRound& round) { round.lose(id); });
  for_each_round([&](OpenRound& round) { round.drop(id); });
  forget_expected(id);
  act_on_validation(id, trust_.validation().drop(id));
  if (!trust_.agreement().reported(id)) trust_.agreement().drop(id);  // nobody waits for its report
  if (MeshIsland* island = members_.find(id)) recovery_.begin(*island);
}

void RoundCoordinator::begin_anew(const IslandId& id, OuterStep round) {
  for_each_round([&](OpenRound& later) {
    if (later.round() <= round) return;
    later.lose(id);
    later.drop(id);
  });
}

void RoundCoordinator::send_away(const IslandId& id, ErrorCode code, const std::string& why) {
  turn_.send(id, HubGoodbye{code, why, false});
  turn_.act(CloseConnection{id});
  remove(id, false, why);
}

void RoundCoordinator::tell_parts(const IslandId& id) {
  const MeshIsland* island = members_.find(id);
  if (island == nullptr) return;
  for_each_round([&](OpenRound& round) { round.parts().tell(*island); });
}

bool RoundCoordinator::may_average() const {
  // Somebody may know more than its backup.
  return trust_.agreed() && !trust_.spoiled() && !state_.may_be_outdated();
}

bool RoundCoordinator::may_commit(OuterStep round) const {
  return round == state_.committed() && trust_.agreed().has_value();
}

void RoundCoordinator::commit(OpenRound& round) {
  const OpenAttempt done = round.take_attempt();
  HubCommit commit = round.record(done);
  commit.lease_cursor = inner_.leases().cursor();
  commit.mixture = turn_.mixture().eras;
  commit = state_.sign(std::move(commit));
  PersistCommit persist = round.account(done, commit);
  const RoundCommitted news{commit, persist.seconds, persist.mean_loss_nats, round.went_directly()};
  turn_.act(std::move(persist));
  for (const IslandId& id : done.live()) {
    turn_.send(id, commit);
    MeshIsland* island = members_.find(id);
    if (island == nullptr) continue;
    island->claimed.reset();  // of the state before: it is about to leave it
    island->left_behind_since.reset();
  }
  turn_.publish(news);
  round.blame().note_accepted(done);
  // A majority told the hash of the state before it. Whoever did not yet is asked for the next one's.
  trust_.agreement().stop_waiting();
  trust_.compare_hashes(state_.committed());
  const std::vector<IslandId> dissenters = trust_.agreement().dissenters();
  state_.advance(commit);
  trust_.begin_state(voters_of(commit));
  for (const IslandId& id : done.live()) trust_.agreement().expect(id);
  close(round, done);
  recover_those_who_train(dissenters);  // now: their work is in the commit
}

void RoundCoordinator::close(OpenRound& round, const OpenAttempt& done) {
  std::set<IslandId> averaged;  // their leases are used up
  for (const AttemptMember& member : done.order()) {
    if (trained(member)) averaged.insert(member.id);
  }
  round.close(averaged);
  auto closed = rounds_.extract(round.round());
  closed_.push_back(std::move(closed.mapped()));
  if (OpenRound* after = find_round(state_.committed())) after->parts().follow(nullptr);
  for (const auto& [id, island] : members_.islands()) {
    if (!done.live().contains(id)) start_recovering(id);
  }
}

// ---- the ways back, and forth

void RoundCoordinator::forget_expected(const IslandId& id) {
  for_each_round([&](OpenRound& round) { round.parts().forget_expected(id); });
  inner_.forget_awaited(id);
}

void RoundCoordinator::forget_expected() {
  for_each_round([](OpenRound& round) { round.parts().forget_expected(); });
  inner_.forget_awaited();
}

void RoundCoordinator::abandon_rounds() {
  for (auto& [number, round] : rounds_) {
    round->abandon();
    closed_.push_back(std::move(round));
  }
  rounds_.clear();
  inner_.forget_awaited();
}

void RoundCoordinator::place_all() {
  inner_.await_all_that_are_here();
  for (auto& [id, island] : members_.islands()) {
    start_recovering(id);
    if (island.connected && island.claimed && island.claimed->outer_step == state_.committed()) {
      recovery_.place_holder(island, island.claimed->state_hash);
    }
  }
}

void RoundCoordinator::on(const RollBack& event) {
  standstill_.rollback_answered();
  if (event.to > state_.committed() || finished_) return;
  abandon_rounds();
  dispute_.part_makers();
  state_.go_back(event);
  for (const LeaseRange& lease : event.leases) inner_.leases().give_back(lease);
  trust_.go_back_to(event.to, event.state_hash);
  safekeeping_.go_back_to(event.to);
  standstill_.look_anew();
  end_by_.reset();
  last_validator_.reset();
  for (const auto& [id, island] : members_.islands()) {
    if (island.connected) turn_.send(id, HubWelcome{kMeshVersion, turn_.run(), state_.committed(), {}});
  }
  place_all();
}

std::string RoundCoordinator::fetch_wait() const {
  const std::vector<IslandId> islands = inner_.fetching();
  if (islands.empty() || finished_) return {};
  return fmt::format("round {} waits for {} to fetch the model (up to {:.0f} s more)", round_number(next_round().value),
                     members_.names(islands), std::ceil(Seconds(inner_.fetch_wait_left()).count()));
}

// A round keeps the rate with which it began.
OuterStep RoundCoordinator::next_round() const {
  return rounds_.empty() ? state_.committed() : OuterStep{rounds_.rbegin()->first.value + 1};
}

void RoundCoordinator::on(const DecideDecay& event) {
  if (event.decay && event.decay->from_round < next_round().value) return;
  turn_.set_decay(event.decay);
  turn_.act(PersistDecay{event.decay});
}

void RoundCoordinator::on(const DecideMixture& event) {
  if (event.mixture && event.mixture->from_round < next_round().value) return;
  RunMixture mixture = turn_.mixture();
  mixture.decided = event.mixture;
  adopt(std::move(mixture));
}

// Its era begins where nothing was leased yet: what comes back of earlier ones keeps theirs, so that no position ever
// is of two sources.
void RoundCoordinator::begin_mixture(OuterStep round) {
  RunMixture mixture = turn_.mixture();
  if (!mixture.decided || mixture.decided->from_round > round.value) return;
  mixture.eras.push_back({inner_.leases().cursor(), std::move(mixture.decided->weights)});
  mixture.decided.reset();
  adopt(std::move(mixture));
}

void RoundCoordinator::adopt(RunMixture mixture) {
  turn_.act(PersistMixture{mixture});
  turn_.set_mixture(std::move(mixture));
}

void RoundCoordinator::on(const RollBackFailed& event) { standstill_.rollback_failed(event.to); }

// A commit of this run that this hub does not know of, because it was restored from an older backup.
void RoundCoordinator::fast_forward(const IslandConnected& event) {
  const HubCommit& commit = *event.proven_commit;
  if (!state_.is_newer(commit)) return;
  abandon_rounds();
  state_.go_forth(commit, event.entry.id);
  inner_.leases().forget_before(commit.lease_cursor);
  if (commit.mixture.size() > turn_.mixture().eras.size()) adopt({commit.mixture, {}});
  trust_.forget_states_from(state_.committed());
  trust_.begin_state(voters_of(commit));
  trust_.forget_spoiled();
  standstill_.look_anew();
  inner_.await(state_.last_holders());
  place_all();
}

// ---- the end of the run

void RoundCoordinator::settle_end() {
  if (finished_ || !state_.is_last_round_done() || safekeeping_.awaits_last_upload()) return;
  if (!end_by_) end_by_ = turn_.now() + kEndTimeout;
  const bool late = turn_.now() >= *end_by_;
  if (last_validator_) {
    if (late || !members_.is_here(*last_validator_)) finish();
    return;
  }
  if (!trust_.agreement().complete() && !late) return;
  const bool asks = turn_.run().validate_every > 0 || trust_.evaluation().asks();
  for (const IslandId& id : trust_.agreement().holders()) {
    if (!asks || late || !members_.is_here(id)) continue;
    return ask_of_last_state(id);
  }
  finish();
}

// It validates and evaluates the final parameters, and trains nothing.
void RoundCoordinator::ask_of_last_state(const IslandId& id) {
  const OuterStep last = state_.committed();
  last_validator_ = id;
  HubRoundBegin begin{last, 0, 0, 0, turn_.run().validate_every > 0, turn_.run().fragment_of(last)};
  if (begin.validate) trust_.validation().ask(last, {id}, /*all=*/false);
  if (trust_.evaluation().asks()) {
    trust_.evaluation().ask(last, {id});
    begin.evaluate = true;
  }
  turn_.send(id, begin);
}

void RoundCoordinator::finish() {
  finished_ = true;
  for (const auto& [id, island] : members_.islands()) {
    if (island.connected) say_goodbye(id);
  }
  turn_.publish(RunFinished{state_.committed()});
}

void RoundCoordinator::say_goodbye(const IslandId& id) {
  turn_.send(id, HubGoodbye{ErrorCode::kAborted, "the run is finished", true});
  turn_.act(CloseConnection{id});
}

}  // namespace atl
