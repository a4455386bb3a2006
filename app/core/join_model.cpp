#include "app/core/join_model.h"

#include <algorithm>
#include <array>

#include "net/base/sha256.h"
#include "net/control/told.h"

namespace atl {
namespace {

using StageStatus = StageView::Status;

constexpr std::chrono::seconds kLookTime{60};  // of all the hub's addresses
constexpr std::array<std::string_view, kJoinStages> kStageNames = {"key",  "enrol", "check",     "trainer",
                                                                   "data", "state", "first_step"};

std::uint64_t bytes(const nlohmann::json& data, const char* key) {
  const double value = told::number(data, key).value_or(0);
  return value > 0 && value < 9e18 ? static_cast<std::uint64_t>(value) : 0;
}

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
  link_.call("invite.look", {{"invite", text_}}, this, [this](const auto& answer) {
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

void JoinModel::takeLook(const nlohmann::json& data) {
  const std::string id = told::text(data, "invite");
  if (!looking_ || !invite_ || (!id.empty() && id != invite_->id)) return;  // of a look before this one
  if (!told::yes(data, "ok")) {
    const std::string why = told::text(data, "message");
    return endLook(
        Error{parse_error_code(told::text(data, "code")).value_or(ErrorCode::kInternal),
              why.empty() ? tr("The agent could not ask the hub, and does not say why.").toStdString() : why});
  }
  hub_ = InvitingHub{.address = told::text(data, "address"),
                     .run_name = told::text(data, "run_name"),
                     .run_id = told::text(data, "run_id"),
                     .operator_name = told::text(data, "operator"),
                     .model = told::text(data, "model"),
                     .parameters = bytes(data, "parameters"),
                     .pin = told::text(data, "pin")};
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
  const auto failed = std::ranges::find(stages_, StageStatus::kFailed, &StageView::status);
  std::fill(failed, stages_.end(), StageView{});
  ask();
}

void JoinModel::ask() {
  joining_ = true;
  joined_ = done_ = false;
  problem_.reset();
  nlohmann::json params = nlohmann::json::object();
  if (!enrolled_ && !text_.empty()) params["invite"] = text_;
  for (const auto& [key, value] :
       {std::pair("name", resources_.name), std::pair("gpus", resources_.gpus), std::pair("listen", resources_.listen),
        std::pair("advertise", resources_.advertise)}) {
    if (!value.empty()) params[key] = value;
  }
  const auto waiting = std::ranges::find(stages_, StageStatus::kWaiting, &StageView::status);
  if (waiting != stages_.end()) waiting->status = StageStatus::kRunning;
  Q_EMIT changed();
  link_.call("join", params, this, [this](const auto& answer) {
    if (!answer.ok() && joining_) fail(answer.error());
  });
}

void JoinModel::cancel() {
  if (looking_) endLook(std::nullopt);
  if (!joining_) return;
  joining_ = false;
  stages_.assign(kJoinStages, {});
  // An agent that knows no such method has nothing that could be cancelled.
  link_.call("join.cancel", nlohmann::json::object(), this, [](const auto&) {});
  Q_EMIT changed();
}

void JoinModel::take(const ControlEvent& event, const NodeState* state) {
  if (event.kept || !event.data.is_object()) return;
  if (event.name == "invite.looked") return takeLook(event.data);
  if (event.name == "join.progress" && told::text(event.data, "stage") == "trainer") startAgain(event.data);
  if (!joining_) return;
  if (event.name == "join.progress") return takeProgress(event.data);
  if (event.name == "join.done") return takeDone(event.data);
  if (state == nullptr || !done_) return;
  state->island.pid == 0 ? takeAgent(*state) : takeState(*state);
}

void JoinModel::takeProgress(const nlohmann::json& data) {
  const auto name = std::ranges::find(kStageNames, told::text(data, "stage"));
  if (name == kStageNames.end()) return;
  const auto stage = static_cast<JoinStage>(name - kStageNames.begin());
  const std::string status = told::text(data, "status");
  if (stage >= JoinStage::kTrainer) reach(stage);
  StageView& view = at(stage);
  view.done_bytes = bytes(data, "done_bytes");
  view.total_bytes = bytes(data, "total_bytes");
  view.bytes_per_second = told::number(data, "bytes_per_second");
  view.seconds_left = told::number(data, "seconds_left");
  view.text = told::text(data, "text");
  if (status == "done") {
    view.status = StageStatus::kDone;
    if (stage == JoinStage::kEnrol) enrolled_ = true;
    if (stage == JoinStage::kFirstStep) return succeed();
  } else if (status == "failed") {
    view.status = StageStatus::kFailed;
    // Of the agent's own stages join.done tells the code.
    if (stage >= JoinStage::kTrainer) awaitRetry(stage, std::string(view.text));
  } else if (status == "running") {
    // One at a time: what the agent does first is its own choice.
    for (StageView& other : stages_) {
      if (other.status == StageStatus::kRunning) other.status = StageStatus::kWaiting;
    }
    view.status = StageStatus::kRunning;
  }
  Q_EMIT changed();
}

const StageView* JoinModel::retrying() const {
  const auto found = std::ranges::find(stages_, StageStatus::kRetrying, &StageView::status);
  return found != stages_.end() ? &*found : nullptr;
}

// A trainer that failed is started again by the agent, without being asked to; when, its state tells.
void JoinModel::awaitRetry(JoinStage stage, const std::string& cause) {
  done_ = true;
  for (StageView& other : stages_) {
    if (other.status == StageStatus::kRunning || other.status == StageStatus::kRetrying) other = {};
  }
  StageView& failed = at(stage) = {};
  failed.status = StageStatus::kRetrying;
  failed.text = cause;
}

void JoinModel::startAgain(const nlohmann::json& data) {
  const bool failed = problem_ || retrying() != nullptr;
  if (joined_ || !done_ || !failed || told::text(data, "status") != "running") return;
  joining_ = true;
  problem_.reset();
  clearTrainerStages();
}

void JoinModel::clearTrainerStages() {
  for (auto i = static_cast<std::size_t>(JoinStage::kTrainer); i < stages_.size(); ++i) stages_[i] = {};
}

void JoinModel::takeDone(const nlohmann::json& data) {
  if (told::yes(data, "ok")) {
    enrolled_ = done_ = true;
    reach(JoinStage::kTrainer);
    if (at(JoinStage::kTrainer).status == StageStatus::kWaiting) at(JoinStage::kTrainer).status = StageStatus::kRunning;
    Q_EMIT changed();
    return;
  }
  const std::string why = told::text(data, "message");
  fail({parse_error_code(told::text(data, "code")).value_or(ErrorCode::kInternal),
        why.empty() ? tr("The agent could not join, and does not say why.").toStdString() : why});
}

// The stage of the trainer that runs, or that failed.
JoinStage JoinModel::underWay() const {
  for (int i = kJoinStages - 1; i > static_cast<int>(JoinStage::kTrainer); --i) {
    const StageStatus status = stages_[static_cast<std::size_t>(i)].status;
    if (status == StageStatus::kRunning || status == StageStatus::kRetrying) return static_cast<JoinStage>(i);
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
  } else if (state.island.state == "error") {
    fail(
        {ErrorCode::kTrainerFailed, error.empty() ? tr("The trainer failed; its log says why.").toStdString() : error});
  } else if (!agent.wish.empty() && agent.wish != "run") {
    fail({ErrorCode::kAborted, tr("Meanwhile this machine was told to stop training, or to pause.").toStdString()});
  } else if (!state.joined() && retrying() != nullptr) {
    fail({ErrorCode::kAborted, tr("Meanwhile this machine was told to leave the run.").toStdString()});
  }
}

// What a trainer's state tells, should the agent not tell of stages.
void JoinModel::takeState(const NodeState& state) {
  const IslandState& island = state.island;
  if (island.tokens > 0 && (island.state == "training" || island.state == "syncing")) return succeed();
  const bool recovers = island.state == "recovering";
  if (!recovers && island.state != "waiting" && island.state != "training") return;
  const JoinStage stage = recovers ? JoinStage::kState : JoinStage::kFirstStep;
  if (retrying() != nullptr) clearTrainerStages();  // another one, whose start was not told
  if (at(stage).status != StageStatus::kWaiting) return;
  reach(stage);
  at(stage).status = StageStatus::kRunning;
  Q_EMIT changed();
}

void JoinModel::reach(JoinStage stage) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(stage); ++i) stages_[i].status = StageStatus::kDone;
}

void JoinModel::fail(const Error& problem) {
  joining_ = false;
  problem_ = problem;
  auto failed = std::ranges::find(stages_, StageStatus::kFailed, &StageView::status);
  if (failed == stages_.end()) failed = std::ranges::find(stages_, StageStatus::kRetrying, &StageView::status);
  if (failed == stages_.end()) failed = std::ranges::find(stages_, StageStatus::kRunning, &StageView::status);
  if (failed == stages_.end()) failed = std::ranges::find(stages_, StageStatus::kWaiting, &StageView::status);
  for (StageView& stage : stages_) {
    if (stage.status == StageStatus::kRunning) stage.status = StageStatus::kWaiting;
  }
  if (failed != stages_.end()) {
    failed->status = StageStatus::kFailed;
    failed->text = problem.message;
  }
  Q_EMIT changed();
}

void JoinModel::succeed() {
  stages_.assign(kJoinStages, {});
  for (StageView& stage : stages_) stage.status = StageStatus::kDone;
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
