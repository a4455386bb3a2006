// What an island does with the hub's messages once it has the run's configuration: recover, train the inner phase, take
// part in the all-reduce, take the outer step. One thread; owns no socket and no thread.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/collective/all_reduce.h"
#include "net/disk/inner_state_file.h"
#include "net/disk/kept_average_file.h"
#include "net/recovery/state_fetch.h"
#include "net/wire/mesh.h"
#include "trainer/engine/engine.h"
#include "trainer/island/attempt_gate.h"
#include "trainer/island/batch_source.h"
#include "trainer/island/island_status.h"
#include "trainer/island/outer_state_store.h"
#include "trainer/optim/schedule.h"

namespace atl {

// What the loop asks of the network and of its owner.
class RoundLoopNetwork {
 public:
  virtual ~RoundLoopNetwork() = default;
  virtual void send(const IslandMessage& message) = 0;
  virtual std::variant<AllReduceReport, AllReduceFailure> all_reduce(const AllReduceSpec& spec,
                                                                     std::span<const float> input,
                                                                     std::span<std::byte> canonical,
                                                                     const AbortSignal& abort) = 0;
  virtual Result<FetchedState> fetch(const HubRecover& recover) = 0;
  virtual Result<std::vector<float>> initial_parameters() = 0;
  virtual void publish(StateNews news) = 0;  // the status has changed in a way that people watch

  // The island's disk; by default there is none.
  virtual void keep_average(OuterStep, WireFormat, const std::string&, ByteView) {}
  virtual Result<KeptAverage> kept_average(OuterStep, const std::string&) { return nothing_kept(); }
  virtual Result<FetchedState> kept_state(const HeldState&) { return nothing_kept(); }
  // The hub's commit, before the outer step is taken on it.
  virtual void keep_commit(const HubCommit&) {}

 private:
  static Error nothing_kept() { return Error{ErrorCode::kNotFound, "nothing is kept"}; }
};

class RoundLoop {
 public:
  // All references outlive the loop.
  RoundLoop(const RunConfig& run, Engine& engine, BatchSource& batches, OuterStateStore& outer, AttemptGate& gate,
            IslandStatus& status, RoundLoopNetwork& network, const AbortSignal& stop);

  // Once, before any message: offers the hub the outer state that was loaded from disk, if there is one.
  void begin();
  // Acts on one message. May block in an all-reduce or a fetch, both of which end with `stop`.
  Status handle(const HubMessage& message);
  // True while there is an inner step to take; work() takes it, and reports the round when it was the last.
  bool has_work() const { return phase_ == Phase::kTraining; }
  Status work();
  // Retries a recovery that failed; call now and then while has_work() is false.
  Status idle();
  bool finished() const { return finished_; }
  // Between two rounds: nothing is begun that would be lost.
  bool between_rounds() const { return !has_round_; }

  // The work of the inner phase under way; nothing outside of one.
  std::optional<InnerState> interrupted_work() const;
  // Before any message: goes on from it if the hub begins the same round again; else it is forgotten.
  void resume_from(InnerState work) { interrupted_ = std::move(work); }

 private:
  enum class Phase { kWaiting, kTraining, kSyncing };
  struct Average {  // of the newest attempt, whole or not
    Attempt attempt;
    WireFormat wire = WireFormat::kFp32;
    std::string digest;  // empty: it failed or was aborted; what is left are whole_buckets
    Bytes canonical;
    std::vector<bool> whole_buckets;
    std::vector<bool> final_buckets;  // of them, those that did not travel in this attempt
    int world_size = 0;
  };

  Status on(const HubWelcome& message);
  Status on(const HubRoster& message);
  Status on(const HubInitialise& message);
  Status on(const HubRecover& message);
  Status on(const HubRoundBegin& message);
  Status on(const HubAttempt& message);
  Status on(const HubAbort& message);
  Status on(const HubCommit& message);
  Status on(const HubGoodbye& message);
  Status on(const HubProbe&) { return ok_status(); }  // acted on when it came, beside the training
  Status on(const HubShowChunks& message);
  Status on(const HubNotice& message);

  Status recover();
  Status validate();
  AllReduceSpec spec_of(const HubAttempt& message);
  ErrorFeedback feedback();
  Result<Average> begin_average(const AllReduceSpec& spec);
  bool is_too_large(const Average& average, double norm_limit) const;
  Status take_outer_step(const HubCommit& message, WireFormat wire, ByteView canonical);
  void attempt_failed(Average average, const AllReduceFailure& failure);
  bool holds_average() const { return average_ && !average_->digest.empty(); }
  Status finish_inner_phase();
  Status report_not_finite(const std::string& what);
  bool take_up_interrupted_work(const HubRoundBegin& message);
  void adopt_outer_state();  // inner parameters become the outer ones; says IslandRecovered
  void set_phase(Phase phase, IslandPhase shown);
  float learning_rate() const;

  const RunConfig& run_;
  Engine& engine_;
  BatchSource& batches_;
  OuterStateStore& outer_;
  AttemptGate& gate_;
  IslandStatus& status_;
  RoundLoopNetwork& network_;
  const AbortSignal& stop_;
  const WarmupStableDecay schedule_;

  Phase phase_ = Phase::kWaiting;
  HubRoundBegin round_;  // the open one, once has_round_
  bool has_round_ = false;
  std::uint32_t inner_step_ = 0;  // taken in this round
  double loss_sum_ = 0;           // over those
  double inner_seconds_ = 0;      // over those
  Clock::time_point sync_began_;
  IslandReady ready_;                   // as sent
  std::vector<float> pseudo_gradient_;  // outer - local, canonical; kept until the commit
  // With formats that feed errors back [numel], else empty. What the committed rounds lost of this island's gradients,
  // sent with the next; and what the open round loses, in all of its attempts: kept buckets keep theirs.
  std::vector<float> residual_;
  std::vector<float> lost_;
  std::optional<Average> average_;
  std::optional<HubRecover> recover_;  // not done yet
  Clock::time_point recover_again_;
  std::optional<InnerState> interrupted_;  // until the first round begins
  bool finished_ = false;
};

}  // namespace atl
