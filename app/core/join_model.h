// Joining a run, step by step: what the wizard's pages show and do. Owned by a Node; GUI thread. The invite is kept in
// memory only, for as long as it is needed.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <QObject>
#include <QTimer>

#include "app/core/agent_link.h"
#include "net/control/events.h"
#include "net/control/run_costs.h"
#include "net/wire/invite.h"

namespace atl {

// What the hub of an invite says of itself before the secret is sent (`invite.look`).
struct InvitingHub {
  std::string address;                                 // that answered
  std::string run_name, run_id, operator_name, model;  // empty: it does not say
  std::uint64_t parameters = 0;
  std::optional<RunCosts> costs = {};  // empty: it does not say
  std::string pin;                     // SHA-256 of the authority's key, hex; equal to the invite's
};

struct JoinResources {
  std::string name;
  std::string gpus = "all";
  std::string listen, advertise;              // HOST:PORT; empty: the default
  std::optional<std::uint32_t> threads = {};  // of the processor; 0: all; empty: as the configuration says
  bool leave_other = false;                   // the run that was joined before
};

struct StageView {
  // kRetrying: it failed, and the agent begins again by itself, with another trainer.
  enum class Status { kWaiting, kRunning, kRetrying, kDone, kFailed };
  Status status = Status::kWaiting;
  std::uint64_t done_bytes = 0, total_bytes = 0;  // 0: not counted in bytes
  std::optional<double> bytes_per_second, seconds_left;
  std::optional<double> retry_in_seconds;  // in kRetrying, once the agent has said it
  std::string text;                        // what went wrong
};

class JoinModel : public QObject {
  Q_OBJECT

 public:
  explicit JoinModel(AgentLink& link, QObject* parent = nullptr);

  // Offline. The error's code tells the defect: kInviteMalformed, kInviteExpired, kVersionUnsupported.
  Status setInvite(const QString& text, std::chrono::sys_seconds now);
  const std::optional<Invite>& invite() const { return invite_; }  // never show its secret
  const std::string& inviteText() const { return text_; }          // the same; empty: there is none
  void forgetInvite();

  // Asks the hub who it is; `lookChanged` when it answered. A pin that does not fit has no way around.
  void look();
  bool looking() const { return looking_; }
  const std::optional<InvitingHub>& hub() const { return hub_; }
  const std::optional<Error>& lookProblem() const { return look_problem_; }

  // Hands the invite to the agent, once the person agreed. Stages follow.
  void join(const JoinResources& resources);
  void retry();   // the stage that failed, and what follows
  void cancel();  // safe at every stage: what was made stays, or was never used
  bool joining() const { return joining_; }
  bool joined() const { return joined_; }  // the first inner step was taken
  const StageView& stage(JoinStage stage) const { return stages_[static_cast<std::size_t>(stage)]; }
  const StageView* retrying() const;  // the stage that the agent begins again, if it is so; joining() then
  const std::optional<Error>& problem() const { return problem_; }

  void take(const HeardEvent& event);
  void interrupted();  // what came of it will not be heard: events were missed, or the agent is another one

 Q_SIGNALS:
  void lookChanged();
  void changed();

 private:
  StageView& at(JoinStage stage) { return stages_[static_cast<std::size_t>(stage)]; }
  void endLook(std::optional<Error> problem);
  void takeLook(const event::InviteLooked& looked);
  void ask();
  void takeProgress(const event::JoinProgress& told);
  void startAgain();
  void takeDone(const event::JoinDone& done);
  void takeState(const NodeState& state);
  void takeAgent(const NodeState& state);
  void awaitRetry(JoinStage stage, const std::string& cause);
  JoinStage underWay() const;
  void clearTrainerStages();
  void reach(JoinStage stage);  // what comes before it is done
  void fail(const Error& problem);
  void succeed();

  AgentLink& link_;
  std::string text_;
  std::optional<Invite> invite_;
  std::optional<InvitingHub> hub_;
  std::optional<Error> look_problem_, problem_;
  bool looking_ = false, joining_ = false, joined_ = false;
  bool enrolled_ = false;  // the invite is used: from here on the agent comes back without it
  bool done_ = false;      // the agent has handed over to the trainer
  std::vector<StageView> stages_{kJoinStages};
  JoinResources resources_;
  QTimer look_time_;
};

}  // namespace atl
