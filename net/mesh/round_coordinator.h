// The hub's heart: which islands are members, which rounds are open, when they are averaged, committed, given up. A
// pure state machine: events and the time go in, actions come out; sockets, clocks and the disk are its owner's
// (net/hub). One thread.
//
// An island is recovering until it holds the committed outer state, then it trains. Round k is begun for all that train
// then, each with a lease of sequences. Who recovers while it is open only receives its result. When all trainers are
// ready, or the stragglers' grace is over, an attempt averages over those that are; when one fails, the next begins
// over the survivors. All live members of an attempt hold the same digest: the round is committed, and every member
// takes the outer step. No round is committed before a majority has said which state the round before made
// (HashAgreement).
//
// With F fragments, up to F rounds are open at once: round k + 1 begins when the first attempt of round k does, for
// those who are ready, and they train it while round k is averaged. Rounds are committed in their order.
//
// What cannot be decided, or was lost, is a named standstill: never a guess, and never silence.
//
// The state is in parts, each of which can be used alone; this class passes on to them what happens, and carries out
// what one of them decides for all (MeshVerdicts).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/mesh/committed_state.h"
#include "net/mesh/inner_phase.h"
#include "net/mesh/neighbour_advice.h"
#include "net/mesh/open_round.h"
#include "net/mesh/recovery.h"
#include "net/mesh/safekeeping.h"
#include "net/mesh/standstill_watch.h"
#include "net/mesh/state_dispute.h"

namespace atl {

class RoundCoordinator final : private MeshVerdicts {
 public:
  using Actions = CoordinatorTurn::Actions;
  enum class Phase { kWaiting, kTraining, kSyncing, kStandstill, kFinished };

  // `fragment_numels`: see CoordinatorTurn; where they are not known, attempts go round the ring.
  RoundCoordinator(RunConfig run, const CoordinatorMemory& memory, CommitSigner sign,
                   std::vector<std::int64_t> fragment_numels = {});

  // Tick: at least every 250 ms. `now` never goes back.
  Actions next(const CoordinatorEvent& event, Clock::time_point now);

  OuterStep committed() const { return state_.committed(); }
  bool round_open() const { return !rounds_.empty(); }
  const OpenRounds& rounds() const { return rounds_; }
  Phase phase() const;
  const std::map<IslandId, MeshIsland>& islands() const { return members_.islands(); }
  bool dialable(const IslandId& island) const { return links_.dialable(island); }
  bool is_removed(const IslandId& island) const { return state_.is_removed(island); }  // by the run's operator
  const std::optional<Standstill>& standstill() const { return standstill_.standstill(); }
  Clock::time_point standstill_since() const { return standstill_.since(); }
  std::string waits_for() const { return standstill_.waits_for(); }
  std::string fetch_wait()
      const;  // for people: for whose fetch the next round waits, and how long; empty: for nobody's
  const Safekeeping& safekeeping() const { return safekeeping_; }
  const std::optional<DecidedDecay>& decay() const { return turn_.decay(); }
  const RunMixture& mixture() const { return turn_.mixture(); }
  OuterStep next_round() const;  // the first that has not begun

 private:
  // MeshVerdicts
  void start_recovering(const IslandId& island) override;
  void begin_anew(const IslandId& island, OuterStep round) override;
  void send_away(const IslandId& island, ErrorCode code, const std::string& why) override;
  void tell_parts(const IslandId& island) override;
  void commit(OpenRound& round) override;
  bool may_average() const override;
  bool may_commit(OuterStep round) const override;

  // coordinator_messages.cpp: what happens, and what islands say
  void on(const IslandConnected& event);
  void on(const IslandSaid& event);
  void on(const IslandDisconnected& event);
  void on(const IslandDialled& event);
  void on(const IslandRemoved& event);
  void on(const RollBack& event);
  void on(const RollBackFailed& event);
  void on(const DecideDecay& event);
  void on(const DecideMixture& event);
  void on(const Tick&) {}
  void said(MeshIsland&, const IslandHello&) {}  // only the first message of a connection counts
  void said(MeshIsland& island, const IslandHeartbeat& message);
  void said(MeshIsland& island, const IslandReady& message);
  void said(MeshIsland& island, const IslandHave& message);
  void said(MeshIsland& island, const IslandAttemptFailed& message);
  void said(MeshIsland& island, const IslandApplied& message) { recovery_.said(island, message); }
  void said(MeshIsland& island, const IslandRecovered& message) { recovery_.said(island, message); }
  void said(MeshIsland& island, const IslandLeaseReturned& message);
  void said(MeshIsland& island, const IslandValidation& message);
  void said(MeshIsland& island, const IslandEvaluation& message) { trust_.learn(island.id(), message); }
  void said(MeshIsland& island, const IslandLeaving& message);
  void said(MeshIsland& island, const IslandLinkReport& message);
  void said(MeshIsland& island, const IslandChunks& message);
  void said(MeshIsland& island, const IslandDurable& message);
  void said(MeshIsland& island, const IslandUploaded& message) { safekeeping_.said(island, message); }
  void disconnect(const IslandId& id);
  void pause(const IslandId& id);
  void remove(const IslandId& id, bool left, const std::string& reason);
  void bury_the_silent();
  void part_from_the_missed();
  void fast_forward(const IslandConnected& event);

  void resume(const CoordinatorMemory& memory);
  void settle();
  void settle_rounds();
  OpenRound& begin_round(OuterStep round);
  void begin_mixture(OuterStep round);
  void adopt(RunMixture mixture);
  void compare_hashes();
  void recover_those_who_train(const std::vector<IslandId>& islands);
  void close(OpenRound& round, const OpenAttempt& done);
  void abandon_rounds();
  void place_all();
  void forget_expected(const IslandId& id);
  void forget_expected();
  void act_on_validation(const IslandId& by, ValidationWatch::Outcome outcome);
  void settle_end();
  void ask_of_last_state(const IslandId& id);
  void finish();
  void say_goodbye(const IslandId& id);
  OpenRound* find_round(OuterStep round) const;
  OpenRound* find_round_before(OuterStep round) const;
  bool is_any_averaged() const;
  // For those that are open now, the oldest first, as long as each is; one may be closed on the way.
  template <class Act>
  void for_each_round(const Act& act);
  RoundSurroundings surroundings() { return {turn_, members_, links_, trust_, inner_.leases(), *this}; }

  CoordinatorTurn turn_;
  Membership members_;
  MeshLinks links_;
  MeshTrust trust_;
  CommittedState state_;
  InnerPhase inner_;
  Safekeeping safekeeping_;
  Recovery recovery_;
  StateDispute dispute_;
  StandstillWatch standstill_;
  NeighbourAdvice advice_;
  OpenRounds rounds_;
  std::vector<std::unique_ptr<OpenRound>> closed_;  // in this event: who closed one may be in the midst of it
  bool began_ = false;                              // an event came

  // After the last round: waits for reports, then for its validation and its evaluation.
  std::optional<Clock::time_point> end_by_;
  std::optional<IslandId> last_validator_;
  bool finished_ = false;
};

template <class Act>
void RoundCoordinator::for_each_round(const Act& act) {
  std::vector<OuterStep> open;
  for (const auto& [number, round] : rounds_) open.push_back(number);
  for (const OuterStep number : open) {
    if (OpenRound* round = find_round(number)) act(*round);
  }
}

}  // namespace atl
