#include "app/core/agent_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/core/recorder.h"
#include "net/control/control_server.h"
#include "net/control/json_rpc.h"

namespace atl {
namespace {

constexpr std::size_t kMaxCalls = 1024;  // that wait for an answer
// A look at a socket of this machine costs nothing.
constexpr std::chrono::milliseconds kLookForAgent{1000};
constexpr const char* kAgentGone = "agent.gone";

bool is_count(const nlohmann::json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_number_unsigned();
}

double number_or(const nlohmann::json& object, const char* key, double otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

}  // namespace

AgentLink::AgentLink(OpenStream open, LinkTiming timing)
    : open_(std::move(open)), timing_(timing), wait_(timing.first_retry) {
  retry_.setSingleShot(true);
  connect(&retry_, &QTimer::timeout, this, &AgentLink::tryAgain);
  const auto shortest = std::min(timing.answer_time, timing.hello_time);
  sweep_.setInterval(std::clamp(shortest / 8, std::chrono::milliseconds(5), std::chrono::milliseconds(250)));
  connect(&sweep_, &QTimer::timeout, this, &AgentLink::sweep);
}

AgentLink::~AgentLink() { dropStream(); }

void AgentLink::start() {
  if (!stream_ && !retry_.isActive()) connectNow();
}

void AgentLink::reconnect() {
  const QPointer<AgentLink> alive(this);
  ended({ErrorCode::kPeerLost, tr("connecting again").toStdString()});
  if (!alive) return;
  retry_.stop();
  wait_ = timing_.first_retry;
  setState(LinkState::kConnecting, {});
  if (alive) connectNow();
}

void AgentLink::resubscribe() {
  if (stream_ && state_ == LinkState::kConnected && !subscribing_) subscribe(last_seq_ > 0 ? last_seq_ - 1 : 0);
}

Seconds AgentLink::now() const {
  return stream_ ? stream_->now() : Seconds(Clock::now().time_since_epoch()) + clock_offset_;
}

void AgentLink::connectNow() {
  dropStream();
  stream_ = open_();
  connected_at_ = received_at_ = Clock::now();
  connect(stream_.get(), &LineStream::opened, this, [this] {
    ask("hello", nlohmann::json::object(), timing_.hello_time,
        {.context = this, .answer = [this](const auto& hello) { greeted(hello); }, .own = true});
  });
  connect(stream_.get(), &LineStream::received, this, &AgentLink::take);
  connect(stream_.get(), &LineStream::closed, this, &AgentLink::ended);
  stream_->open();
}

// It may be in the middle of delivering: it goes when the event loop turns.
void AgentLink::dropStream() {
  if (!stream_) return;
  clock_offset_ = stream_->now() - Seconds(Clock::now().time_since_epoch());
  stream_->disconnect(this);
  stream_.release()->deleteLater();
}

void AgentLink::tryAgain() {
  if (!stream_) return connectNow();
  // The way to the machine is open, and there was no agent at its end.
  subscribe(last_seq_ > 0 ? last_seq_ - 1 : 0);
}

// ---- hello and subscription

void AgentLink::greeted(const Result<nlohmann::json>& hello) {
  if (!hello.ok()) return ended(hello.error());
  if (!hello->is_object() || hello->value("version", nlohmann::json()) != kControlVersion) {
    return ended({ErrorCode::kVersionUnsupported,
                  tr("The Atoll that runs there speaks another version of the control protocol (this one speaks %1). "
                     "Install the same version of Atoll on both sides, restart the agent, and connect again.")
                      .arg(kControlVersion)
                      .toStdString()});
  }
  const nlohmann::json program = hello->value("program", nlohmann::json());
  program_ = program.is_string() ? program.get<std::string>() : "";
  // The event that is known already comes once more: by it the agent is known to be the same.
  subscribe(last_seq_ > 0 ? last_seq_ - 1 : 0);
}

void AgentLink::subscribe(std::uint64_t since) {
  subscribing_ = true;
  ask("events.subscribe", {{"since", since}}, timing_.answer_time,
      {.context = this, .answer = [this, since](const auto& answer) { subscribed(answer, since); }, .own = true});
}

void AgentLink::subscribed(const Result<nlohmann::json>& answer, std::uint64_t since) {
  subscribing_ = false;
  if (!answer.ok() && answer.error().code == ErrorCode::kNotRunning) {
    retryLater(kLookForAgent);
    return setState(LinkState::kNoAgent, answer.error().message);
  }
  if (!answer.ok()) return ended(answer.error());
  if (!is_count(*answer, "first") || !is_count(*answer, "last")) {
    return ended({ErrorCode::kProtocol, tr("what answers there does not speak as an agent does").toStdString()});
  }
  const auto first = (*answer)["first"].get<std::uint64_t>(), last = (*answer)["last"].get<std::uint64_t>();
  if (last < since || last < last_seq_) {
    // Another agent, which counts from one.
    reload_due_ = true;
    last_seq_ = 0;
    return subscribe(0);
  }
  verify_next_ = last_seq_ > 0 && first <= last_seq_;
  if (last_seq_ == 0) kept_until_ = last;
  if (!verify_next_) reload_due_ = true;
  if (!verify_next_ && last_seq_ > 0) last_seq_ = 0;
  const bool reload = std::exchange(reload_due_, false);
  const QPointer<AgentLink> alive(this);
  setState(LinkState::kConnected, {});
  if (!alive || state_ != LinkState::kConnected) return;
  const bool lost = std::exchange(was_connected_, true);
  if (reload) tellToReload(lost);
}

void AgentLink::tellToReload(bool lost) {
  const QPointer<AgentLink> alive(this);
  if (lost) Q_EMIT eventsLost();
  if (alive) Q_EMIT mustReload();
}

// ---- calls

void AgentLink::call(std::string_view method, const nlohmann::json& params, QObject* context, Answer answer) {
  if (!answer) answer = [](const auto&) {};
  if (stream_ && state_ == LinkState::kConnected && calls_.size() < kMaxCalls) {
    return ask(method, params, timing_.answer_time,
               {.context = context != nullptr ? context : this, .answer = std::move(answer)});
  }
  const bool nobody = state_ == LinkState::kNoAgent;
  const Error error{nobody ? ErrorCode::kNotRunning : ErrorCode::kPeerLost,
                    problem_.empty() ? tr("there is no connection to the agent yet").toStdString() : problem_};
  const auto tell = [error, answer = std::move(answer)] { answer(error); };
  QMetaObject::invokeMethod(context != nullptr ? context : this, tell, Qt::QueuedConnection);
}

template <class Write>
void AgentLink::record(Write write) {
  if (recorder_ == nullptr) return;
  write(*recorder_);
  if (recorder_->problem().empty()) return;
  Q_EMIT recordingFailed(QString::fromStdString(std::exchange(recorder_, nullptr)->problem()));
}

void AgentLink::ask(std::string_view method, const nlohmann::json& params, std::chrono::milliseconds time, Call call) {
  const std::int64_t id = next_id_++;
  call.method = method;
  call.sent = Clock::now();
  call.expires = call.sent + time;
  calls_[id] = std::move(call);
  if (!sweep_.isActive()) sweep_.start();
  const QByteArray line = QByteArray::fromStdString(encode_request(id, method, params));
  record([&](Recorder& to) { to.sent(line); });
  stream_->send(line);
}

void AgentLink::sweep() {
  const QPointer<AgentLink> alive(this);
  const auto now = Clock::now();
  bool silent = false;
  for (;;) {
    const auto late = std::ranges::find_if(calls_, [&](const auto& call) { return call.second.expires <= now; });
    if (late == calls_.end()) break;
    const Call call = std::move(late->second);
    calls_.erase(late);
    silent = silent || received_at_ < call.sent;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - call.sent).count();
    if (call.context) {
      call.answer(Error{ErrorCode::kTimeout, tr("no answer to %1 within %2 s; it is busy, suspended or hangs")
                                                 .arg(QString::fromStdString(call.method))
                                                 .arg(std::max<qint64>(seconds, 1))
                                                 .toStdString()});
    }
    if (!alive) return;
  }
  if (calls_.empty()) sweep_.stop();
  // Not one slow answer, but silence: a fresh connection may find somebody.
  if (silent && stream_) ended({ErrorCode::kTimeout, tr("The agent is there but does not answer.").toStdString()});
}

// ---- lines

void AgentLink::take(const QByteArray& line) {
  received_at_ = Clock::now();
  record([&](Recorder& to) { to.received(line); });
  auto reply = decode_reply({line.data(), static_cast<std::size_t>(line.size())});
  if (!reply.ok()) {
    return ended({ErrorCode::kProtocol, tr("What answers there does not speak Atoll's control protocol: %1")
                                            .arg(QString::fromStdString(reply.error().message))
                                            .toStdString()});
  }
  if (const auto* response = std::get_if<RpcResponse>(&*reply)) return takeResponse(*response);
  takeEvent(std::move(std::get<RpcEvent>(*reply)));
}

void AgentLink::takeResponse(const RpcResponse& response) {
  const auto found = calls_.find(response.id);
  if (found == calls_.end()) return;  // it came late
  const Call call = std::move(found->second);
  calls_.erase(found);
  const bool gone = !response.result.ok() && response.result.error().code == ErrorCode::kNotRunning;
  const QPointer<AgentLink> alive(this);
  if (call.context) call.answer(response.result);
  // Behind `atoll control --stdio` the agent goes without a word.
  if (alive && gone) resubscribe();
}

void AgentLink::takeEvent(RpcEvent received) {
  nlohmann::json& params = received.params;
  const auto name = params.find("event");
  if (name == params.end() || !name->is_string()) return;
  if (*name == kAgentGone) return agentGone();
  LinkEvent event{.name = name->get<std::string>(),
                  .seq = is_count(params, "seq") ? params["seq"].get<std::uint64_t>() : 0,
                  .time = number_or(params, "time", 0),
                  .data = params.contains("data") ? std::move(params["data"]) : nlohmann::json()};
  bool reload = false;
  if (event.seq > 0) {
    if (std::exchange(verify_next_, false)) {
      if (event.seq == last_seq_ && event.time == last_time_) return;
      reload = true;  // another agent, which has counted this far
    } else if (event.seq <= last_seq_) {
      return;
    } else {
      reload = last_seq_ > 0 && event.seq != last_seq_ + 1;
    }
    last_seq_ = event.seq;
    last_time_ = event.time;
    event.kept = event.seq <= kept_until_;
  }
  const QPointer<AgentLink> alive(this);
  if (reload) tellToReload(/*lost=*/true);
  if (alive) Q_EMIT eventReceived(event);
}

// The way to its machine stays (docs/control.md, "Another machine").
void AgentLink::agentGone() {
  const QPointer<AgentLink> alive(this);
  failCalls(std::exchange(calls_, {}), {ErrorCode::kPeerLost, tr("The agent has ended.").toStdString()});
  if (!alive || !stream_ || state_ != LinkState::kConnected) return;
  verify_next_ = false;
  subscribe(last_seq_ > 0 ? last_seq_ - 1 : 0);
}

// ---- the end of a connection

void AgentLink::ended(const Error& given) {
  const Error why = given;  // it may be a part of what goes now
  if (stream_) record([&](Recorder& to) { to.closed(why.message); });
  dropStream();
  subscribing_ = verify_next_ = false;
  kept_until_ = 0;
  const QPointer<AgentLink> alive(this);
  Calls calls = std::exchange(calls_, {});
  const bool lasted = state_ == LinkState::kConnected && Clock::now() - connected_at_ >= timing_.longest_retry;
  if (lasted) wait_ = timing_.first_retry;
  switch (why.code) {
    case ErrorCode::kNotRunning:
      retryLater(kLookForAgent);
      setState(LinkState::kNoAgent, why.message);
      break;
    case ErrorCode::kVersionUnsupported:
    case ErrorCode::kPermissionDenied:
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kNotFound:
    case ErrorCode::kCorrupt: setState(LinkState::kRefused, why.message); break;
    case ErrorCode::kAborted: setState(LinkState::kEnded, why.message); break;
    default: retryLater(timing_.longest_retry); setState(LinkState::kLost, why.message);
  }
  const auto code = why.code == ErrorCode::kNotRunning ? ErrorCode::kNotRunning : ErrorCode::kPeerLost;
  if (alive) failCalls(calls, {code, why.message});
}

void AgentLink::failCalls(const Calls& calls, const Error& error) {
  const QPointer<AgentLink> alive(this);
  for (const auto& [id, call] : calls) {
    if (alive && call.context && !call.own) call.answer(error);
  }
}

void AgentLink::retryLater(std::chrono::milliseconds longest) {
  wait_ = std::min({wait_, timing_.longest_retry, longest});
  retry_.start(wait_);
  wait_ *= 2;
}

void AgentLink::setState(LinkState state, const std::string& problem) {
  if (state == state_ && problem == problem_) return;
  if (state == LinkState::kConnected && state_ != state) connected_at_ = Clock::now();
  state_ = state;
  problem_ = problem;
  Q_EMIT stateChanged();
}

void AgentLink::recordTo(Recorder* recorder) {
  recorder_ = recorder;
  if (recorder_ != nullptr && state_ == LinkState::kConnected) tellToReload(/*lost=*/false);
}

}  // namespace atl
