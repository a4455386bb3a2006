#include "app/core/node.h"

#include <algorithm>

#include "app/core/child_leash.h"
#include "net/base/unix_time.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kPoll{1000};
// Steps bring the trainer's state, but not the agent's part of it.
constexpr std::chrono::milliseconds kFresh{900}, kAskAnyway{3000};
constexpr std::chrono::seconds kGpusStale{30};

LinkTiming timing_for(const NodeAddress& address, LinkTiming timing) {
  // ssh has to look a name up, to connect (15 s at most) and to log in.
  if (std::holds_alternative<SshNode>(address)) timing.hello_time = std::max(timing.hello_time, 3 * timing.answer_time);
  return timing;
}

bool is_state(const nlohmann::json& data) {
  return data.is_object() && data.contains("state") && data.contains("run_id") && data.contains("inner_step");
}

}  // namespace

Node::Node(NodeAddress address, OpenStream open, RunCommand run, LinkTiming timing)
    : address_(std::move(address)),
      run_(std::move(run)),
      link_(std::move(open), timing_for(address_, timing)),
      alerts_([this](const Alert& alert) { Q_EMIT alerted(alert); }),
      history_(link_),
      islands_(link_),
      rounds_(link_),
      check_(link_),
      checkpoints_(link_, run_),
      log_(link_),
      settings_(link_),
      join_(link_),
      tell_([this] { Q_EMIT changed(); }) {
  connect(&link_, &AgentLink::event, this, &Node::take);
  connect(&link_, &AgentLink::mustReload, this, &Node::reload);
  connect(&link_, &AgentLink::eventsLost, this, [this] {
    sync_.reset();
    uplink_.reset();
    join_.interrupted();
    check_.lost();
  });
  connect(&link_, &AgentLink::stateChanged, this, &Node::linkChanged);
  connect(&link_, &AgentLink::recordingFailed, this, [this](const QString& why) {
    alerts_.add(Alert::Level::kError, why, unix_time_now(), /*news=*/true);
    tell_.request();
  });
  poll_.setInterval(kPoll);
  connect(&poll_, &QTimer::timeout, this, &Node::poll);
}

Node::~Node() = default;

void Node::start() {
  link_.start();
  poll_.start();
}

std::optional<Seconds> Node::age() const {
  if (!state_) return std::nullopt;
  return std::max(Seconds(0), link_.now() - heard_);
}

bool Node::live() const {
  const auto age = this->age();
  return link_.state() == LinkState::kConnected && age && *age < kStaleAfter;
}

// ---- what the agent says

void Node::take(const ControlEvent& event) {
  told_at_ = event.time;
  if (is_state(event.data)) return takeState(event);
  if (event.name == "gpu.sample" && !event.kept) takeGpus(event);
  const std::string own = state_ ? state_->island.island : std::string();
  sync_.take(event, own);
  uplink_.take(event, nullptr);
  check_.take(event);
  join_.take(event, nullptr);
  alerts_.take(event, nullptr);
  history_.take(event, nullptr);
  if (!event.kept) {
    islands_.take(event);
    rounds_.take(event, nullptr);
  }
  tell_.request();
}

// Of an event, or of state.get, whose name is then that.
void Node::takeState(const ControlEvent& event) {
  auto read = node_state_from_json(event.data);
  if (!read.ok()) {
    alerts_.add(Alert::Level::kWarning,
                tr("What the agent says of its state cannot be read (%1). Is it of another version of Atoll?")
                    .arg(QString::fromStdString(read.error().message)),
                event.time, /*news=*/false);
    return tell_.request();
  }
  NodeState state = std::move(*read);
  sync_.take(event, state.island.island);
  uplink_.take(event, &state);
  history_.take(event, &state);
  alerts_.take(event, &state);
  if (event.kept) return tell_.request();
  const bool other_run = state_ && !state_->island.run_id.empty() && !state.island.run_id.empty() &&
                         state_->island.run_id != state.island.run_id;
  const bool other_agent = state_ && state.agent.pid && state_->agent.pid && *state.agent.pid != *state_->agent.pid;
  complete(state, event.data);
  alerts_.take(state_, state, event.time);
  state_ = std::move(state);
  heard_ = link_.now();
  state_at_ = Clock::now();
  if (other_run) {
    sync_.reset();
    islands_.clear();
    rounds_.clear();
    islands_.reload();
    rounds_.reload();
  }
  rounds_.take(event, &state_->island);
  checkpoints_.take(event);
  join_.take(event, &*state_);
  tell_.request();
  if (other_agent) link_.resubscribe();
}

// What an event does not say is as it was.
void Node::complete(NodeState& state, const nlohmann::json& json) const {
  const bool whole = json.contains("agent");
  const bool samples = json.contains("gpus");
  if (!samples && state_ && Clock::now() - gpus_at_ < kGpusStale) state.gpus = state_->gpus;
  if (whole || !state_) return;
  state.agent = state_->agent;
  if (!state.mfu) state.mfu = state_->mfu;
  if (!state.disk_free_bytes) state.disk_free_bytes = state_->disk_free_bytes;
  if (!state.learning_rate) state.learning_rate = state_->learning_rate;
  if (!state.gradient_norm) state.gradient_norm = state_->gradient_norm;
  // As the agent words it: the trainer does not know that it is to end.
  if (state.agent.followed == "finish" && state.island.pid > 0) state.island.state = "finishing";
}

void Node::takeGpus(const ControlEvent& event) {
  const auto gpus = event.data.is_object() ? event.data.find("gpus") : event.data.end();
  if (!state_ || gpus == event.data.end()) return;
  if (auto samples = gpu_samples_from_json(*gpus); samples.ok()) {
    state_->gpus = std::move(*samples);
    gpus_at_ = Clock::now();
  }
}

// ---- asking

void Node::reload() {
  asking_ = false;
  askState();
  history_.reload();
  islands_.reload();
  rounds_.reload();
  checkpoints_.reload();
  settings_.reload();
  log_.reload();
}

void Node::askState() {
  if (asking_) return;
  asking_ = true;
  link_.call("state.get", nlohmann::json::object(), this, [this](const auto& answer) {
    asking_ = false;
    if (!answer.ok() || !answer->is_object()) return;  // the age tells; the link tries again
    asked_ = Clock::now();
    if (answer->contains("gpus")) gpus_at_ = asked_;
    const bool recorded = std::holds_alternative<RecordedNode>(address_) && told_at_ > 0;
    takeState({.name = "state.get", .seq = 0, .time = recorded ? told_at_ : unix_time_now(), .data = *answer});
  });
}

void Node::poll() {
  const auto now = Clock::now();
  const bool fresh = now - state_at_ < kFresh && now - asked_ < kAskAnyway;
  // A recording tells by itself what was answered.
  const bool asks = link_.state() == LinkState::kConnected && !std::holds_alternative<RecordedNode>(address_);
  if (asks && !fresh) askState();
  if (live() != was_live_) {
    was_live_ = live();
    tell_.request();
  }
}

void Node::linkChanged() {
  if (link_.state() != LinkState::kConnected) {
    asking_ = false;
    check_.lost();
  }
  was_live_ = live();
  tell_.request();
}

// ---- what the owner wishes

void Node::wish(std::string_view method, const nlohmann::json& params, AgentLink::Answer answer) {
  link_.call(method, params, this, [this, answer = std::move(answer)](const auto& result) {
    askState();
    if (answer) answer(result);
  });
}

void Node::pause(std::optional<Seconds> span, AgentLink::Answer answer) {
  nlohmann::json params = nlohmann::json::object();
  if (span) params["for_seconds"] = span->count();
  wish("pause", params, std::move(answer));
}

void Node::resume(AgentLink::Answer answer) { wish("resume", nlohmann::json::object(), std::move(answer)); }
void Node::finish(AgentLink::Answer answer) { wish("finish", nlohmann::json::object(), std::move(answer)); }
void Node::stop(AgentLink::Answer answer) { wish("stop", nlohmann::json::object(), std::move(answer)); }
void Node::leave(AgentLink::Answer answer) { wish("leave", nlohmann::json::object(), std::move(answer)); }

Status Node::startAgent() {
  const auto* local = std::get_if<LocalNode>(&address_);
  if (local == nullptr) {
    return Error{
        ErrorCode::kInvalidArgument,
        tr("An agent is started by this app on this machine only. On the other one, run: atoll service install")
            .toStdString()};
  }
  QStringList arguments{"agent"};
  const std::filesystem::path& home = local->home.island.directory;
  // A home of its own; else the agent finds the user's as we did.
  if (local->home.socket.parent_path() == home) arguments << "--home" << QString::fromStdString(home.string());
  if (!leave_atoll_running(arguments)) {  // it writes a log of its own
    return Error{ErrorCode::kNotFound, tr("The agent cannot be started: %1 cannot be run. Install Atoll's command line "
                                          "beside this program.")
                                           .arg(atoll_program())
                                           .toStdString()};
  }
  link_.reconnect();
  return ok_status();
}

void Node::createDiagnostics(const QString& file, AgentLink::Answer answer) {
  link_.call("diag.create", {{"file", file.toStdString()}}, this, std::move(answer));
}

}  // namespace atl
