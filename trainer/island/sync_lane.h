// One fragment's synchronisation on an island, from the end of an inner phase to the outer step: pseudo-gradient,
// attempts to average it, and, once the hub has committed the round, the outer step and its hash. It may work while the
// inner loop trains the next round, and beside the lanes of other fragments.
//
// One thread at a time runs a lane (lane_thread.h); owns no socket and no thread. What it is told are LaneCommands, in
// order; what it tells the inner loop is LaneNews, always before the hub hears of the same. The lane owns the
// pseudo-gradient, what encoding lost of it, and the average; of the outer state the fragment's values, as
// outer_state_store.h says.
#pragma once

#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "net/collective/all_reduce.h"
#include "net/collective/ring_schedule.h"
#include "net/disk/kept_average_file.h"
#include "net/model/fragments.h"
#include "net/wire/mesh.h"
#include "trainer/island/attempt_gate.h"
#include "trainer/island/average_room.h"
#include "trainer/island/island_status.h"
#include "trainer/island/outer_state_store.h"

namespace atl {

// ---- what a lane is told

struct LaneBegin {    // the inner phase of a round of this fragment is over
  IslandReady ready;  // to be said, once its norm is known
  std::uint32_t inner_steps = 0;
  bool finite = true;        // false: a step was not, and there is nothing to give
  std::vector<float> local;  // the island's parameters of the fragment, as they were then
};
struct LaneSayReady {  // once more, after a reconnection
  OuterStep round;
};
struct LanePassWelcome {};  // the hub was met again: attempts of before are over
struct LaneForget {         // one that is no longer a member
  IslandId peer;
};
struct LaneDrop {  // the round is given up; answered with LaneDropped
  std::uint64_t generation = 0;
};
struct LaneOwes {  // what rounds before lost, [numel of the fragment]; empty: nothing
  std::vector<float> residual;
};
using LaneCommand = std::variant<LaneBegin, LaneSayReady, LanePassWelcome, LaneForget, LaneDrop, LaneOwes, HubAttempt,
                                 HubAbort, HubShowChunks, HubCommit>;

// ---- what it tells

struct LaneApplied {  // the outer step of `round` is taken
  FragmentId fragment;
  OuterStep round;
  HeldState state;
  bool contributed = false;   // with a weight
  std::vector<float> buffer;  // to be used for the next LaneBegin::local
};
struct LaneRefused {  // a commit of what it does not hold; the hub was told
  OuterStep round;
};
struct LaneDropped {
  std::uint64_t generation = 0;
};
struct LaneFailed {  // the island cannot go on
  Error error;
};
using LaneNews = std::variant<LaneApplied, LaneRefused, LaneDropped, LaneFailed>;

// What a lane asks of the network and of its owner; on the lane's thread.
class LaneNetwork {
 public:
  virtual ~LaneNetwork() = default;
  virtual void send(const IslandMessage& message) = 0;
  // After a failure nobody else reads `canonical`; after a success others may, as long as they share it.
  virtual std::variant<AllReduceReport, AllReduceFailure> all_reduce(const AllReduceSpec& spec,
                                                                     std::span<const float> input,
                                                                     const SharedBytes& canonical,
                                                                     const AbortSignal& abort) = 0;
  virtual void publish(StateNews news) = 0;  // the status has changed in a way that people watch

  // For the news of how synchronisation goes: an attempt begins, the hub's commit came.
  virtual void attempt_begins(const HubAttempt&) {}
  virtual void committed(OuterStep) {}
  virtual void forget(const IslandId&) {}                  // connections with it are closed
  virtual bool gave_to(const HubCommit&) { return true; }  // this island is one of those whose work is in it

  // The island's disk; by default there is none. The average that all_reduce() made last, or that was kept before, with
  // its digest: on the disk when it returns, or as soon as the disk can.
  virtual void keep_average(OuterStep, WireFormat, const std::string&, const SharedBytes&) {}
  virtual Result<KeptAverage> kept_average(OuterStep, const std::string&) {
    return Error{ErrorCode::kNotFound, "nothing is kept"};
  }
  // The hub's commit, before the outer step is taken on it.
  virtual void keep_commit(const HubCommit&) {}
  // The outer step was taken, on the state of that tree hash and with this average.
  virtual void keep_round(const HubCommit&, WireFormat, const SharedBytes&, const std::string&, const HeldState&) {}
};

class SyncLane {
 public:
  using Tell = std::function<void(LaneNews)>;

  // All references outlive the lane.
  SyncLane(FragmentId fragment, Fragment part, const RunConfig& run, OuterStateStore& outer, AttemptGate& gate,
           IslandStatus& status, LaneNetwork& network, Tell tell);

  // May block in an all-reduce, which ends with the gate.
  void handle(LaneCommand command);

  // While no thread runs it: with formats that feed errors back [numel of the fragment], else empty.
  const std::vector<float>& residual() const { return residual_; }

 private:
  struct Average {  // of the newest attempt, whole or not
    Attempt attempt;
    RingPayload payload;  // as the attempt cut it
    int world_size;
    std::string digest = {};  // empty: it failed or was aborted; what is left are whole_buckets
    SharedBytes canonical = {};
    bool is_shared = false;  // it was whole: the disk's thread may read it yet
    std::vector<bool> whole_buckets = {};
    std::string gave_sketch = {}, sketch = {};  // as they are said (IslandHave)
  };

  void on(LaneBegin command);
  void on(const LaneSayReady& command);
  void on(const LanePassWelcome&) { gate_.pass_welcome(); }
  void on(const LaneForget& command) { network_.forget(command.peer); }
  void on(const LaneDrop& command);
  void on(LaneOwes command) { residual_ = std::move(command.residual); }
  void on(const HubAttempt& message);
  void on(const HubAbort& message);
  void on(const HubShowChunks& message);
  void on(const HubCommit& message);

  bool has_round(OuterStep round) const { return has_round_ && ready_.round == round; }
  bool holds_average() const { return average_ && !average_->digest.empty(); }
  void say_ready();
  AllReduceSpec spec_of(const HubAttempt& message);
  ErrorFeedback feedback();
  Result<Average> begin_average(const AllReduceSpec& spec);
  bool is_too_large(const Average& average, double norm_limit) const;
  void sketch(Average& average) const;
  void say_have(const Average& average, double seconds);
  void attempt_failed(Average average, const AllReduceFailure& failure);
  void refuse(OuterStep round, Attempt attempt, const std::string& why, std::vector<bool> whole_buckets = {});
  void take_outer_step(const HubCommit& message, WireFormat wire, const SharedBytes& canonical);

  const FragmentId fragment_;
  const Fragment part_;  // of the model
  const RunConfig& run_;
  OuterStateStore& outer_;
  AttemptGate& gate_;
  IslandStatus& status_;
  LaneNetwork& network_;
  const Tell tell_;

  bool has_round_ = false;
  IslandReady ready_;                   // as said; of the round, if there is one
  std::vector<float> pseudo_gradient_;  // outer - local; kept until the commit. Empty: there is none to give
  // With formats that feed errors back, else empty. What the committed rounds lost of this island's gradients, sent
  // with the next; and what the open round loses, in all of its attempts: kept buckets keep theirs.
  std::vector<float> residual_;
  std::vector<float> lost_;
  AverageRoom room_;
  std::optional<Average> average_;
};

}  // namespace atl
