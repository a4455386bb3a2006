#include "app/core/join_model.h"

#include <algorithm>

#include "net/base/sha256.h"
#include "net/control/methods.h"

namespace atl {
namespace {

using ViewStatus = StageView::Status;

constexpr std::chrono::seconds kLookTime{60};  // of all the hub's addresses

void wipe(std::string& secret) {
  std::ranges::fill(secret, '\0');
  secret.clear();
}

}  // namespace

JoinModel::JoinModel(AgentLink& link, QObject* parent) : QObject(parent), link_(link) {
  look_time_.setSingleShot(true);
  connect(&look_time_, &QTimer::timeout, this, [this] {
    endLook(Error{ErrorCode::kTimeout, tr("The hub did not answer in time. Is this machine online?").toStdString()});
  });
}

// ---- the invite

Status JoinModel::setInvite(const QString& pasted, std::chrono::sys_seconds now) {
  forgetInvite();
  std::string joined = pasted.toStdString();
  std::erase_if(joined, [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); });
  auto invite = decode_invite(joined, now);
  if (!invite.ok()) {
    wipe(joined);
    return invite.error();
  }
  text_ = std::move(joined);
  invite_ = std::move(*invite);
  return ok_status();
}

void JoinModel::forgetInvite() {
  wipe(text_);
  if (invite_) std::ranges::fill(invite_->secret, std::byte{0});
  invite_.reset();
  hub_.reset();
  look_problem_.reset();
  looking_ = false;
  look_time_.stop();
}

void JoinModel::look() {
  if (!invite_ || looking_) return;
  looking_ = true;
  hub_.reset();
  look_problem_.reset();
  look_time_.start(kLookTime);
  Q_EMIT lookChanged();
  link_.call(method::InviteLook::kName, encode_message(method::InviteLook{text_}), this, [this](const auto& answer) {
    if (!answer.ok() && looking_) endLook(answer.error());
  });
}

void JoinModel::endLook(std::optional<Error> problem) {
  looking_ = false;
  look_time_.stop();
  look_problem_ = std::move(problem);
  if (look_problem_) hub_.reset();
  Q_EMIT lookChanged();
}

void JoinModel::takeLook(const event::InviteLooked& looked) {
  if (!looking_ || !invite_ || (!looked.invite.empty() && looked.invite != invite_->id)) return;  // of one before
  if (!looked.ok) {
    return endLook(Error{parse_error_code(looked.code).value_or(ErrorCode::kInternal),
                         looked.message.empty()
                             ? tr("The agent could not ask the hub, and does not say why.").toStdString()
                             : looked.message});
  }
  hub_ = InvitingHub{.address = looked.address,
                     .run_name = looked.run_name,
                     .run_id = looked.run_id,
                     .operator_name = looked.operator_name,
                     .model = looked.model,
                     .parameters = looked.parameters,
                     .costs = looked.costs,
                     .pin = looked.pin};
  // The agent has compared both before it answered: this is to say it, not to find it out.
  if (hub_->pin != to_hex(invite_->authority_pin)) {
    return endLook(
        Error{ErrorCode::kPinMismatch,
              tr("The hub that answers is not the one of this invite: its key is another one. Somebody may be "
                 "in between. Do not join; ask who gave you the invite.")
                  .toStdString()});
  }
  if (!hub_->run_id.empty() && hub_->run_id != invite_->run_id) {
    return endLook(
        Error{ErrorCode::kInviteOtherRun,
              tr("The hub that answers serves another run than the one of this invite. Ask for a new invite.")
                  .toStdString()});
  }
  endLook(std::nullopt);
}

// ---- joining

void JoinModel::join(const JoinResources& resources) {
  if (joining_) return;
  resources_ = resources;
  enrolled_ = false;
  stages_.assign(kJoinStages, {});
  ask();
}

void JoinModel::retry() {
  if (joining_ || joined_ || !problem_) return;
  const auto failed = std::ranges::find(stages_, ViewStatus::kFailed, &StageView::status);
  std::fill(failed, stages_.end(), StageView{});
  ask();
}

void JoinModel::ask() {
  joining_ = true;
  joined_ = done_ = false;
  problem_.reset();
  method::Join params{.name = resources_.name,
                      .listen = resources_.listen,
                      .advertise = resources_.advertise,
                      .gpus = resources_.gpus,
                      .threads = resources_.threads,
                      .leave = resources_.leave_other};
  if (!enrolled_) params.invite = text_;
  const auto waiting = std::ranges::find(stages_, ViewStatus::kWaiting, &StageView::status);
  if (waiting != stages_.end()) waiting->status = ViewStatus::kRunning;
  Q_EMIT changed();
  link_.call(method::Join::kName, encode_message(params), this, [this](const auto& answer) {
    if (!answer.ok() && joining_) fail(answer.error());
  });
}

void JoinModel::cancel() {
  if (looking_) endLook(std::nullopt);
  if (!joining_) return;
  joining_ = false;
  stages_.assign(kJoinStages, {});
  // An agent that knows no such method has nothing that could be cancelled.
  link_.call(method::JoinCancel::kName, nlohmann::json::object(), this, [](const auto&) {});
  Q_EMIT changed();
}

void JoinModel::take(const HeardEvent& event) {
  if (event.kept) return;
  if (const NodeState* state = state_in(event.what)) {
    if (!joining_ || !done_) return;
    return state->island.pid == 0 ? takeAgent(*state) : takeState(*state);
  }
  std::visit(Overloaded{[&](const event::InviteLooked& e) { takeLook(e); },
                        [&](const event::JoinProgress& e) {
                          if (e.stage == JoinStage::kTrainer && e.status == StageStatus::kRunning) startAgain();
                          if (joining_ && e.stage != JoinStage::kUnknown) takeProgress(e);
                        },
                        [&](const event::JoinDone& e) {
                          if (joining_) takeDone(e);
                        },
                        [](const auto&) {}},
             event.what);
}

void JoinModel::takeProgress(const event::JoinProgress& told) {
  const JoinStage stage = told.stage;
  if (stage >= JoinStage::kTrainer) reach(stage);
  StageView& view = at(stage);
  view.done_bytes = told.done_bytes.value_or(0);
  view.total_bytes = told.total_bytes.value_or(0);
  view.bytes_per_second = told.bytes_per_second;
  view.seconds_left = told.seconds_left;
  view.text = told.text;
  switch (told.status) {
    case StageStatus::kDone:
      view.status = ViewStatus::kDone;
      if (stage == JoinStage::kEnrol) enrolled_ = true;
      if (stage == JoinStage::kFirstStep) return succeed();
      break;
    case StageStatus::kFailed:
      view.status = ViewStatus::kFailed;
      // Of the agent's own stages join.done tells the code.
      if (stage >= JoinStage::kTrainer) awaitRetry(stage, std::string(view.text));
      break;
    case StageStatus::kRunning:
      // One at a time: what the agent does first is its own choice.
      for (StageView& other : stages_) {
        if (other.status == ViewStatus::kRunning) other.status = ViewStatus::kWaiting;
      }
      view.status = ViewStatus::kRunning;
      break;
    case StageStatus::kWaiting:
    case StageStatus::kUnknown: break;
  }
  Q_EMIT changed();
}

const StageView* JoinModel::retrying() const {
  const auto found = std::ranges::find(stages_, ViewStatus::kRetrying, &StageView::status);
  return found != stages_.end() ? &*found : nullptr;
}

// A trainer that failed is started again by the agent, without being asked to; when, its state tells.
void JoinModel::awaitRetry(JoinStage stage, const std::string& cause) {
  done_ = true;
  for (StageView& other : stages_) {
    if (other.status == ViewStatus::kRunning || other.status == ViewStatus::kRetrying) other = {};
  }
  StageView& failed = at(stage) = {};
  failed.status = ViewStatus::kRetrying;
  failed.text = cause;
}

void JoinModel::startAgain() {
  const bool failed = problem_ || retrying() != nullptr;
  if (joined_ || !done_ || !failed) return;
  joining_ = true;
  problem_.reset();
  clearTrainerStages();
}

void JoinModel::clearTrainerStages() {
  for (auto i = static_cast<std::size_t>(JoinStage::kTrainer); i < stages_.size(); ++i) stages_[i] = {};
}

void JoinModel::takeDone(const event::JoinDone& done) {
  if (done.ok) {
    enrolled_ = done_ = true;
    reach(JoinStage::kTrainer);
    if (at(JoinStage::kTrainer).status == ViewStatus::kWaiting) at(JoinStage::kTrainer).status = ViewStatus::kRunning;
    Q_EMIT changed();
    return;
  }
  fail({parse_error_code(done.code).value_or(ErrorCode::kInternal),
        done.message.empty() ? tr("The agent could not join, and does not say why.").toStdString() : done.message});
}

// The stage of the trainer that runs, or that failed.
JoinStage JoinModel::underWay() const {
  for (int i = kJoinStages - 1; i > static_cast<int>(JoinStage::kTrainer); --i) {
    const ViewStatus status = stages_[static_cast<std::size_t>(i)].status;
    if (status == ViewStatus::kRunning || status == ViewStatus::kRetrying) return static_cast<JoinStage>(i);
  }
  return JoinStage::kTrainer;
}

// What the agent says of itself while no trainer runs.
void JoinModel::takeAgent(const NodeState& state) {
  const AgentView& agent = state.agent;
  const std::string& error = state.island.error;
  if (agent.restart_in_seconds) {
    const JoinStage stage = underWay();
    const std::string cause = agent.last_exit ? agent.last_exit->text : error;
    awaitRetry(stage, at(stage).text.empty() ? cause : std::string(at(stage).text));
    at(stage).retry_in_seconds = agent.restart_in_seconds;
    Q_EMIT changed();
  } else if (state.island.state == IslandPhase::kError) {
    fail(
        {ErrorCode::kTrainerFailed, error.empty() ? tr("The trainer failed; its log says why.").toStdString() : error});
  } else if (agent.wish != Wish::kUnknown && agent.wish != Wish::kRun) {
    fail({ErrorCode::kAborted, tr("Meanwhile this machine was told to stop training, or to pause.").toStdString()});
  } else if (!state.joined() && retrying() != nullptr) {
    fail({ErrorCode::kAborted, tr("Meanwhile this machine was told to leave the run.").toStdString()});
  }
}

// What a trainer's state tells, should the agent not tell of stages.
void JoinModel::takeState(const NodeState& state) {
  const IslandState& island = state.island;
  const IslandPhase phase = island.state;
  const bool trains = phase == IslandPhase::kTraining;
  if (island.tokens > 0 && (trains || phase == IslandPhase::kSyncing)) return succeed();
  const bool recovers = phase == IslandPhase::kRecovering;
  if (!recovers && !trains && phase != IslandPhase::kWaiting) return;
  const JoinStage stage = recovers ? JoinStage::kState : JoinStage::kFirstStep;
  if (retrying() != nullptr) clearTrainerStages();  // another one, whose start was not told
  if (at(stage).status != ViewStatus::kWaiting) return;
  reach(stage);
  at(stage).status = ViewStatus::kRunning;
  Q_EMIT changed();
}

void JoinModel::reach(JoinStage stage) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(stage); ++i) stages_[i].status = ViewStatus::kDone;
}

void JoinModel::fail(const Error& problem) {
  joining_ = false;
  problem_ = problem;
  auto failed = std::ranges::find(stages_, ViewStatus::kFailed, &StageView::status);
  if (failed == stages_.end()) failed = std::ranges::find(stages_, ViewStatus::kRetrying, &StageView::status);
  if (failed == stages_.end()) failed = std::ranges::find(stages_, ViewStatus::kRunning, &StageView::status);
  if (failed == stages_.end()) failed = std::ranges::find(stages_, ViewStatus::kWaiting, &StageView::status);
  for (StageView& stage : stages_) {
    if (stage.status == ViewStatus::kRunning) stage.status = ViewStatus::kWaiting;
  }
  if (failed != stages_.end()) {
    failed->status = ViewStatus::kFailed;
    failed->text = problem.message;
  }
  Q_EMIT changed();
}

void JoinModel::succeed() {
  stages_.assign(kJoinStages, {});
  for (StageView& stage : stages_) stage.status = ViewStatus::kDone;
  joining_ = false;
  joined_ = true;
  forgetInvite();
  Q_EMIT changed();
}

void JoinModel::interrupted() {
  if (looking_) {
    endLook(Error{ErrorCode::kPeerLost, tr("The agent was restarted meanwhile. Try again.").toStdString()});
  }
  if (joining_ && !done_) {
    fail({ErrorCode::kPeerLost, tr("The agent was restarted meanwhile. Try again.").toStdString()});
  }
}

}  // namespace atl
