// What the agent says of itself and of its trainer (`state.get`): one board, written by the agent's loop and the line
// to the trainer, read by the control socket. Thread-safe.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "app/agent/supervisor.h"
#include "net/base/deadline.h"
#include "net/control/home.h"

namespace atl {

struct AgentFacts {
  WishFile wish = {};          // as the owner said
  Wish followed = Wish::kRun;  // as it is followed now: outside the training hours a run is a pause
  Supervisor::Phase phase = Supervisor::Phase::kIdle;
  bool joined = false;
  std::int64_t trainer_pid = 0;  // 0: none runs
  bool taken_over = false;
  std::uint64_t restarts = 0;
  std::optional<TrainerExit> last_exit;
  std::optional<Clock::time_point> retry_at;
  std::string warning;                    // the wish could not be kept, ...
  std::optional<double> disk_free_bytes;  // where the island keeps its checkpoint and data
};

class AgentBoard {
 public:
  explicit AgentBoard(IslandHome home) : home_(std::move(home)) {}

  // But for the wish, which may be newer here than in the loop.
  void set_facts(AgentFacts facts);
  void set_wish(const WishFile& wish);
  void set_trainer_state(const nlohmann::json& state);  // of the one that runs
  void forget_trainer();                                // another one was started
  void set_gpus(nlohmann::json gpus);                   // of the trainer that runs, as gpu.sample has them
  void update(const std::function<void(AgentFacts&)>& change);

  AgentFacts facts() const;
  // IslandState's fields, with "agent" beside them.
  nlohmann::json state() const;

 private:
  nlohmann::json base() const;

  const IslandHome home_;
  const Clock::time_point began_ = Clock::now();
  mutable std::mutex mutex_;
  AgentFacts facts_;            // guarded by mutex_
  nlohmann::json trainer_;      // guarded by mutex_; null until it answered
  nlohmann::json last_;         // guarded by mutex_; what the trainer before it said last
  Clock::time_point heard_at_;  // guarded by mutex_
  nlohmann::json gpus_;         // guarded by mutex_; null: nothing is known
  Clock::time_point gpus_at_;   // guarded by mutex_
};

}  // namespace atl
