#include "app/core/node.h"

#include <algorithm>

#include "app/core/child_leash.h"
#include "net/base/unix_time.h"
#include "net/control/methods.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kLookPace{1000};
constexpr std::chrono::milliseconds kFresh{900};
constexpr std::chrono::seconds kGpusStale{30};

LinkTiming timing_for(const NodeAddress& address, LinkTiming timing) {
  // ssh has to look a name up, to connect (15 s at most) and to log in.
  if (std::holds_alternative<SshNode>(address)) timing.hello_time = std::max(timing.hello_time, 3 * timing.answer_time);
  return timing;
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
  connect(&link_, &AgentLink::eventReceived, this, &Node::read);
  connect(&link_, &AgentLink::mustReload, this, &Node::reload);
  connect(&link_, &AgentLink::eventsLost, this, [this] {
    reader_.forget();
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
  poll_.setInterval(kLookPace);
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

void Node::read(const LinkEvent& event) {
  told_at_ = event.time;
  const auto heard = reader_.read(event.name, event.data, event.time, event.seq, event.kept);
  if (!heard.ok()) return askState();  // should states be what cannot be read, the answer says so
  for (const HeardEvent& one : *heard) take(one);
}

void Node::take(const HeardEvent& event) {
  if (const NodeState* state = state_in(event.what)) return takeState(event, *state);
  const auto* sampled = std::get_if<event::GpuSampled>(&event.what);
  if (sampled != nullptr && !event.kept) takeGpus(sampled->gpus);
  sync_.take(event, state_ ? state_->island.island : std::string());
  uplink_.take(event);
  check_.take(event);
  join_.take(event);
  alerts_.take(event);
  history_.take(event);
  if (!event.kept) {
    islands_.take(event);
    rounds_.take(event);
  }
  tell_.request();
}

void Node::takeState(const HeardEvent& event, const NodeState& state) {
  sync_.take(event, state.island.island);
  uplink_.take(event);
  history_.take(event);
  alerts_.take(event);
  if (event.kept) return tell_.request();
  const bool other_run = state_ && !state_->island.run_id.empty() && !state.island.run_id.empty() &&
                         state_->island.run_id != state.island.run_id;
  const bool other_agent = state_ && state.agent.pid && state_->agent.pid && *state.agent.pid != *state_->agent.pid;
  alerts_.take(state_, state, event.time);
  state_ = state;
  heard_ = link_.now();
  if (Clock::now() - gpus_at_ >= kGpusStale) gpus_.clear();
  if (other_run) {
    sync_.reset();
    islands_.clear();
    rounds_.clear();
    islands_.reload();
    rounds_.reload();
  }
  if (state.has_agent) state_at_ = Clock::now();
  rounds_.take(event);
  checkpoints_.take(event);
  join_.take(event);
  tell_.request();
  if (other_agent) link_.resubscribe();
}

void Node::takeGpus(const std::vector<GpuSample>& gpus) {
  gpus_ = gpus;
  gpus_at_ = Clock::now();
}

void Node::takeAnswer(const nlohmann::json& answer) {
  const bool recorded = std::holds_alternative<RecordedNode>(address_) && told_at_ > 0;
  const double time = recorded ? told_at_ : unix_time_now();
  const auto state = node_state_from_json(answer);
  if (!state.ok()) {
    alerts_.add(Alert::Level::kWarning,
                tr("What the agent says of its state cannot be read (%1). Is it of another version of Atoll?")
                    .arg(QString::fromStdString(state.error().message)),
                time, /*news=*/false);
    return tell_.request();
  }
  reader_.learn(*state);
  if (!state->gpus.empty()) takeGpus(state->gpus);
  take({.what = event::StateChanged{*state}, .time = time});
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
  link_.call(method::StateGet::kName, nlohmann::json::object(), this, [this](const auto& answer) {
    asking_ = false;
    if (answer.ok() && answer->is_object()) takeAnswer(*answer);  // else the age tells; the link tries again
  });
}

void Node::poll() {
  const auto now = Clock::now();
  const bool fresh = now - state_at_ < kFresh;
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

template <class Method>
void Node::wish(const Method& method, AgentLink::Answer answer) {
  link_.call(Method::kName, encode_message(method), this, [this, answer = std::move(answer)](const auto& result) {
    askState();
    if (answer) answer(result);
  });
}

void Node::pause(std::optional<Seconds> span, AgentLink::Answer answer) {
  wish(method::Pause{span ? std::optional(span->count()) : std::nullopt}, std::move(answer));
}

void Node::pauseGpu(std::uint32_t gpu, AgentLink::Answer answer) { wish(method::GpuPause{gpu, {}}, std::move(answer)); }
void Node::resumeGpu(std::uint32_t gpu, AgentLink::Answer answer) { wish(method::GpuResume{gpu}, std::move(answer)); }
void Node::resume(AgentLink::Answer answer) { wish(method::Resume{}, std::move(answer)); }
void Node::finish(AgentLink::Answer answer) { wish(method::Finish{}, std::move(answer)); }
void Node::stop(AgentLink::Answer answer) { wish(method::Stop{}, std::move(answer)); }
void Node::leave(AgentLink::Answer answer) { wish(method::Leave{}, std::move(answer)); }

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
