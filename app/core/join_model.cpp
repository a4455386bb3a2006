#include "app/core/join_model.h"

#include <algorithm>
#include <array>

#include "net/base/sha256.h"
#include "net/control/json_fields.h"

namespace atl {
namespace {

using StageStatus = StageView::Status;

constexpr std::chrono::seconds kLookTime{60};  // of all the hub's addresses
constexpr std::size_t kMaxTextBytes = 4096;
constexpr std::array<std::string_view, kJoinStages> kStageNames = {"key",  "enrol", "check",     "trainer",
                                                                   "data", "state", "first_step"};

std::string text(const nlohmann::json& data, const char* key) {
  const auto found = data.find(key);
  return found != data.end() && found->is_string() ? found->get<std::string>().substr(0, kMaxTextBytes) : std::string();
}

std::optional<double> number(const nlohmann::json& data, const char* key) {
  const auto found = data.find(key);
  return found != data.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

std::uint64_t bytes(const nlohmann::json& data, const char* key) {
  const double value = number(data, key).value_or(0);
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
  const std::string id = data.is_object() ? text(data, "invite") : std::string();
  if (!looking_ || !invite_ || (!id.empty() && id != invite_->id)) return;  // of a look before this one
  if (data.value("ok", nlohmann::json()) != true) {
    const std::string told = text(data, "message");
    return endLook(
        Error{parse_error_code(text(data, "code")).value_or(ErrorCode::kInternal),
              told.empty() ? tr("The agent could not ask the hub, and does not say why.").toStdString() : told});
  }
  hub_ = HubView{.address = text(data, "address"),
                 .run_name = text(data, "run_name"),
                 .run_id = text(data, "run_id"),
                 .operator_name = text(data, "operator"),
                 .model = text(data, "model"),
                 .parameters = bytes(data, "parameters"),
                 .pin = text(data, "pin")};
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
  if (event.name == "join.progress" && text(event.data, "stage") == "trainer") startAgain(event.data);
  if (!joining_) return;
  if (event.name == "join.progress") return takeProgress(event.data);
  if (event.name == "join.done") return takeDone(event.data);
  if (state != nullptr && done_) takeState(*state);
}

void JoinModel::takeProgress(const nlohmann::json& data) {
  const auto name = std::ranges::find(kStageNames, text(data, "stage"));
  if (name == kStageNames.end()) return;
  const auto stage = static_cast<JoinStage>(name - kStageNames.begin());
  const std::string status = text(data, "status");
  if (stage >= JoinStage::kTrainer) reach(stage);
  StageView& view = at(stage);
  view.done_bytes = bytes(data, "done_bytes");
  view.total_bytes = bytes(data, "total_bytes");
  view.bytes_per_second = number(data, "bytes_per_second");
  view.seconds_left = number(data, "seconds_left");
  view.text = text(data, "text");
  if (status == "done") {
    view.status = StageStatus::kDone;
    if (stage == JoinStage::kEnrol) enrolled_ = true;
    if (stage == JoinStage::kFirstStep) return succeed();
  } else if (status == "failed") {
    view.status = StageStatus::kFailed;
    // Of the agent's own stages join.done tells the code.
    if (stage >= JoinStage::kTrainer) return fail({ErrorCode::kTrainerFailed, view.text});
  } else if (status == "running") {
    // One at a time: what the agent does first is its own choice.
    for (StageView& other : stages_) {
      if (other.status == StageStatus::kRunning) other.status = StageStatus::kWaiting;
    }
    view.status = StageStatus::kRunning;
  }
  Q_EMIT changed();
}

// A trainer that failed is started again by the agent, without being asked to.
void JoinModel::startAgain(const nlohmann::json& data) {
  if (joining_ || joined_ || !done_ || !problem_ || text(data, "status") != "running") return;
  joining_ = true;
  problem_.reset();
  for (auto i = static_cast<std::size_t>(JoinStage::kTrainer); i < stages_.size(); ++i) stages_[i] = {};
}

void JoinModel::takeDone(const nlohmann::json& data) {
  if (data.value("ok", nlohmann::json()) == true) {
    enrolled_ = done_ = true;
    reach(JoinStage::kTrainer);
    if (at(JoinStage::kTrainer).status == StageStatus::kWaiting) at(JoinStage::kTrainer).status = StageStatus::kRunning;
    Q_EMIT changed();
    return;
  }
  const std::string told = text(data, "message");
  fail({parse_error_code(text(data, "code")).value_or(ErrorCode::kInternal),
        told.empty() ? tr("The agent could not join, and does not say why.").toStdString() : told});
}

// What the state tells, should the agent not tell of stages.
void JoinModel::takeState(const NodeState& state) {
  const IslandState& island = state.island;
  if (island.state == "error") {
    return fail({ErrorCode::kTrainerFailed,
                 island.error.empty() ? tr("The trainer failed; its log says why.").toStdString() : island.error});
  }
  if (island.pid == 0) return;  // the last words of one that has ended
  if (island.tokens > 0 && (island.state == "training" || island.state == "syncing")) return succeed();
  const bool recovers = island.state == "recovering";
  if (!recovers && island.state != "waiting" && island.state != "training") return;
  const JoinStage stage = recovers ? JoinStage::kState : JoinStage::kFirstStep;
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
