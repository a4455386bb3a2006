// What the agent says of itself and of its trainer (`state.get`): one board, written by the agent's loop and the line
// to the trainer, read by the control socket. Thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/agent/contribution_book.h"
#include "app/agent/paused_gpus.h"
#include "app/agent/supervisor.h"
#include "net/base/deadline.h"
#include "net/base/mutex.h"
#include "net/control/home.h"
#include "net/control/node_state.h"

namespace atl {

struct AgentFacts {
  WishFile wish = {};          // as the owner said
  Wish followed = Wish::kRun;  // as it is followed now: while a rule of the owner's holds a run is a pause
  Supervisor::Phase phase = Supervisor::Phase::kIdle;
  bool joined = false;
  std::int64_t trainer_pid = 0;  // 0: none runs
  bool taken_over = false;
  std::uint64_t restarts = 0;
  std::optional<TrainerExit> last_exit;
  std::optional<Clock::time_point> retry_at;
  std::string warning;  // the wish could not be kept, ...
  std::vector<PausedBy> paused_by;
  TransferCapView upload_cap, download_cap;  // as the trainer is told
  PausedGpus paused_gpus = {};               // as the owner said
  std::optional<double> disk_free_bytes;     // where the island keeps its checkpoint and data
};

class AgentBoard {
 public:
  // `contributions` outlives it.
  AgentBoard(IslandHome home, const ContributionBook& contributions)
      : home_(std::move(home)), contributions_(contributions) {}

  // But for the wish and the paused GPUs, which may be newer here than in the loop.
  void set_facts(AgentFacts facts);
  void set_wish(const WishFile& wish);
  void set_paused_gpus(const PausedGpus& paused);
  void set_trainer_state(const IslandState& state);  // of the one that runs
  void forget_trainer();                             // another one was started
  void set_gpus(std::vector<GpuSample> gpus);        // of the trainer that runs
  void update(const std::function<void(AgentFacts&)>& change);

  AgentFacts facts() const;
  // What the trainer said last, or what is known while none answers, and the agent's part: the one place where a
  // NodeState is put together. state() has the newest samples of the GPUs, too.
  NodeState state() const;
  NodeState with_agent(const IslandState& trainer) const;

 private:
  IslandState base() const ATOLL_REQUIRES(mutex_);
  NodeState put_together(const IslandState& island, bool trainer_answers) const ATOLL_REQUIRES(mutex_);

  const IslandHome home_;
  const ContributionBook& contributions_;
  const Clock::time_point began_ = Clock::now();
  mutable Mutex mutex_;
  AgentFacts facts_ ATOLL_GUARDED_BY(mutex_);
  std::optional<IslandState> trainer_ ATOLL_GUARDED_BY(mutex_);  // empty until it answered
  std::optional<IslandState> last_ ATOLL_GUARDED_BY(mutex_);     // what the trainer before it said last
  Clock::time_point heard_at_ ATOLL_GUARDED_BY(mutex_);
  std::vector<GpuSample> gpus_ ATOLL_GUARDED_BY(mutex_);  // none: nothing is known
  Clock::time_point gpus_at_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace atl
