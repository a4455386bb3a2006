// Joining as the agent does it for others: checks the machine, ends the trainer of a run that is left for it, makes a
// key, enrols, and has the trainer started; each
// stage is told (join_stages.h). May be cancelled at any time until the first inner step. Owned by the agent.
#pragma once

#include <atomic>

#include "app/agent/agent_control.h"
#include "app/agent/join_run.h"
#include "net/base/mutex.h"
#include "net/check/check_task.h"

namespace atl {

class JoinTask {
 public:
  // `control` outlives it. Without `check` the machine is not checked.
  JoinTask(AgentControl& control, CheckTask::Check check) : control_(control), check_(std::move(check)) {}

  // Control methods, on the server's thread. join: {"started": true}; kPermissionDenied while one is under way.
  Result<nlohmann::json> join(const nlohmann::json& params);
  // {"cancelled": false}: there is nothing to cancel, or this machine trains already. What was made stays: a membership
  // is set aside, for the next join to come back to without a new invite.
  Result<nlohmann::json> cancel();

  // The agent's loop: the first inner step was taken; or the trainer failed before, and another one comes, or none.
  void first_step_taken();
  void trainer_failed(bool given_up);

 private:
  // kEnrolling, kFollowing: the trainer is on its way. Who changes it first decides, joining or cancelling.
  enum class Phase { kNone, kEnrolling, kCancelled, kFollowing };

  Result<JoinRequest> request_of(const nlohmann::json& params) const;
  void work(const JoinRequest& request, const AbortSignal& stop);
  Result<JoinOutcome> join_checked(const JoinRequest& request, const AbortSignal& stop);
  Status checked(const JoinRequest& request, const AbortSignal& stop);
  Status end_trainer(const AbortSignal& stop);
  void told(const Result<JoinOutcome>& joined, const Status& kept);
  void stage(JoinStage stage, StageStatus status);
  void set_membership_aside();
  void follow(std::optional<JoinOutcome> joined);
  void forget_failure();

  AgentControl& control_;
  const CheckTask::Check check_;
  std::atomic<Phase> phase_{Phase::kNone};
  Mutex mutex_;
  std::optional<JoinOutcome> followed_ ATOLL_GUARDED_BY(mutex_);  // whose first step is awaited
  bool has_failed_ ATOLL_GUARDED_BY(mutex_) = false;              // a trainer of that one
};

}  // namespace atl
