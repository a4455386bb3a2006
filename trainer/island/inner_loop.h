// What an island does between synchronisations, once it has the run's configuration: recover, train inner phases, hand
// each to the sync lane of its fragment, and take what the lanes made of it between two inner steps. One thread, the
// island's; owns no socket and no thread. It owns the engine; of the outer state what outer_state_store.h says.
//
// With one fragment the lane's round is over before the next begins. With F of them the hub begins rounds up to F - 1
// ahead: the inner loop trains the next while lanes average those before. When a lane has taken the outer step, the
// island's parameters of that fragment become the outer ones, wherever in a round that falls (Streaming DiLoCo,
// arXiv:2501.18512, alpha = 0); the other fragments, and the optimiser's moments, go on as they are.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/disk/inner_state_file.h"
#include "net/recovery/outer_state.h"
#include "net/wire/mesh.h"
#include "trainer/engine/engine.h"
#include "trainer/island/batch_source.h"
#include "trainer/island/inner_steps.h"
#include "trainer/island/island_status.h"
#include "trainer/island/outer_state_store.h"
#include "trainer/island/sync_lane.h"
#include "trainer/optim/schedule.h"

namespace atl {

// What the inner loop asks of its owner; on the island's thread.
class InnerLoopOwner {
 public:
  virtual ~InnerLoopOwner() = default;
  virtual void send(const IslandMessage& message) = 0;
  virtual void post(FragmentId lane, LaneCommand command) = 0;
  virtual Result<FetchedState> fetch(const HubRecover& recover) = 0;
  virtual Result<std::vector<float>> initial_parameters() = 0;
  virtual void publish(StateNews news) = 0;  // the status has changed in a way that people watch
  // The hub asks what the run's tasks come to on the outer parameters as they are now; `to_the_end`: nothing is trained
  // before it is told.
  virtual void evaluate(bool /*to_the_end*/) {}
  // The hub asks for that state to be written to the run's object store; answered with IslandUploaded.
  virtual void upload(const HubUpload&) {}
  // The run is at this outer step: what is later was undone.
  virtual void give_up_uploads_after(OuterStep) {}
  // From the island's disk; by default there is none.
  virtual Result<FetchedState> kept_state(const HeldState&) { return Error{ErrorCode::kNotFound, "nothing is kept"}; }
};

class InnerLoop {
 public:
  // All references outlive the loop. `fragments`: as many as the run has.
  InnerLoop(const RunConfig& run, std::vector<Fragment> fragments, Engine& engine, BatchSource& batches,
            OuterStateStore& outer, IslandStatus& status, InnerLoopOwner& owner, const AbortSignal& stop);

  // What the engine's devices can do at best, in FLOP/s, where that is known: MFU is told then. Before any message.
  void set_peak_flops(std::optional<double> flops) { peak_flops_ = flops; }
  // Once, before any message: offers the hub the outer state that was loaded from disk, if there is one.
  void begin();
  // Acts on one message; what concerns attempts is the lanes' and ignored. May block in a fetch, which ends with
  // `stop`.
  Status handle(const HubMessage& message);
  // Acts on what a lane told. Before each message: the lane told it first.
  Status handle(LaneNews news);
  // True while there is an inner step to take; work() begins it and finishes what the engine need not be ahead by, and
  // hands the round to its lane when all are finished.
  bool has_work() const { return training_; }
  Status work();
  // Retries a recovery that failed; call now and then while has_work() is false.
  Status idle();
  // The hub said goodbye, and no commit of before is left to be taken.
  bool finished() const { return goodbye_ && commits_.empty(); }
  // It did, and lanes take the last commits: there is no other message to wait for.
  bool takes_last_commits() const { return goodbye_ && !commits_.empty(); }
  // A round that was handed to its lane is not over yet: others count on this island.
  bool averages() const { return !open_.empty() || !commits_.empty(); }
  // Between two rounds: nothing is begun that would be lost.
  bool between_rounds() const { return !training_ && !averages(); }
  // From now on no other round is begun.
  void begin_no_more() { begins_ = false; }
  // The outer state that it trains from; nothing before the first.
  const std::optional<HeldState>& outer_state() const { return state_; }

  // The work of the inner phase under way, whose steps it finishes; nothing outside of one, or while averages().
  // `residuals`: of the lanes, by fragment.
  std::optional<InnerState> interrupted_work(const std::vector<std::vector<float>>& residuals);
  // The same while it trains on, but for what lanes owe. Steps that are under way are finished first.
  Result<std::optional<InnerState>> work_so_far();
  // Before any message: goes on from it if the hub begins the same round again; else it is forgotten.
  void resume_from(InnerState work) { interrupted_ = std::move(work); }

 private:
  Status on(const HubWelcome& message);
  Status on(const HubRoster& message);
  Status on(const HubInitialise& message);
  Status on(const HubRecover& message);
  Status on(const HubRoundBegin& message);
  Status on(const HubCommit& message);
  Status on(const HubGoodbye& message);
  Status on(const HubNotice& message);
  Status on(const HubSafe& message);
  Status on(const HubUpload& message);
  // Acted on when they came, beside the training.
  Status on(const HubProbe&) { return ok_status(); }
  Status on(const HubNeighbours&) { return ok_status(); }
  Status on(const HubAttempt&) { return ok_status(); }
  Status on(const HubAbort&) { return ok_status(); }
  Status on(const HubShowChunks&) { return ok_status(); }

  Status on(LaneApplied news);
  Status on(const LaneRefused& news);
  Status on(const LaneDropped& news);
  Status on(const LaneFailed& news) { return news.error; }

  void drop_rounds();
  void drop(const std::vector<FragmentId>& lanes);
  bool waits_for_lanes() const { return lanes_to_drop_ > 0; }
  bool replaces_state() const { return initialises_ || recover_; }
  Status initialise();
  Status recover();
  void adopt_outer_state();  // inner parameters become the outer ones; says IslandRecovered
  Status start(const HubRoundBegin& message);
  std::optional<InnerState> copy_of_work() const;
  bool take_up_interrupted_work(const HubRoundBegin& message);
  Status validate();
  Status return_lease(const Error& why);
  Status end_inner_phase(bool finite);
  void refuse(const HubCommit& message, const char* why);
  Status begin_what_waits();
  void show(IslandPhase phase);
  void end_waiting();
  Result<bool> finish_step();
  float learning_rate(std::uint32_t inner_step) const;
  const Fragment& part(FragmentId fragment) const { return fragments_[fragment.value]; }

  const RunConfig& run_;
  const std::vector<Fragment> fragments_;
  const std::vector<ParameterRange> trained_;  // of all of them, ascending
  Engine& engine_;
  BatchSource& batches_;
  OuterStateStore& outer_;
  IslandStatus& status_;
  InnerLoopOwner& owner_;
  const AbortSignal& stop_;
  const WarmupStableDecay schedule_;
  InnerSteps steps_;                       // of the round that is trained
  const double flops_, torchtitan_flops_;  // of a token (net/step/flops.h)
  std::optional<double> peak_flops_;

  std::optional<HeldState> state_;  // whose parameters the engine was last given: lanes may be further
  bool training_ = false;
  HubRoundBegin round_;                           // the one that is trained, or was last
  std::uint32_t inner_step_ = 0;                  // taken in it, and finished
  double loss_sum_ = 0;                           // over those
  double inner_seconds_ = 0;                      // over those
  std::deque<HubRoundBegin> open_;                // handed to their lanes; in order
  std::deque<HubCommit> commits_;                 // of the rounds to come, in order; the first is with its lane
  std::optional<HubRoundBegin> begin_later_;      // its fragment's round before is not over here
  std::optional<Clock::time_point> waits_since_;  // for the others, with nothing to train
  std::vector<std::vector<float>> buffers_;       // by fragment: for its parameters, once they were used

  bool initialises_ = false;           // when the lanes have dropped their rounds
  std::optional<HubRecover> recover_;  // not done yet; when the lanes have dropped their rounds
  std::uint64_t generation_ = 0;       // of orders to drop
  std::size_t lanes_to_drop_ = 0;
  Clock::time_point recover_again_;
  std::optional<InnerState> interrupted_;  // until the first round begins
  bool starts_anew_ = false;               // the round that waits was begun before: from the outer parameters
  bool begins_ = true;
  bool goodbye_ = false;
};

}  // namespace atl
