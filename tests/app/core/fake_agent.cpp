#include "tests/app/core/fake_agent.h"

#include <fmt/format.h>

#include <QPointer>
#include <algorithm>

#include "net/control/control_server.h"
#include "net/control/json_rpc.h"

namespace atl::test {
namespace {

constexpr std::size_t kMaxKept = 1024;

}  // namespace

struct FakeAgent::Core {
  class Stream;

  std::map<std::string, Method> methods;
  std::vector<Call> calls;
  std::vector<QPointer<QObject>> streams;  // Stream
  nlohmann::json state = training_state();
  struct Kept {
    std::uint64_t seq = 0;
    QByteArray line;
  };
  std::deque<Kept> kept;
  std::uint64_t last_seq = 0;
  double time = kBeginning + 50'000;
  std::size_t history_points = 2000, attempts = 0;
  bool silent = false;
  std::optional<Error> refusal;
  int version = kControlVersion;

  void can();
};

class FakeAgent::Core::Stream final : public LineStream {
 public:
  explicit Stream(std::shared_ptr<Core> core) : core_(std::move(core)) {}

  void open() override {
    ++core_->attempts;
    later([this] {
      if (core_->refusal) return end(*core_->refusal);
      open_ = true;
      core_->streams.emplace_back(this);
      Q_EMIT opened();
    });
  }

  void send(const QByteArray& line) override {
    if (open_) later([this, line] { take(line); });
  }

  void end(const Error& why) {
    if (std::exchange(over_, true)) return;
    open_ = false;
    Q_EMIT closed(why);
  }

  bool subscribed = false;
  bool is_open() const { return open_; }
  void deliver(const QByteArray& line) {
    later([this, line] {
      if (open_) Q_EMIT received(line);
    });
  }

 private:
  // In bounded time a turn of the event loop: what an agent does takes none of the app's.
  void later(std::function<void()> what) {
    to_do_.push_back(std::move(what));
    if (to_do_.size() == 1) QMetaObject::invokeMethod(this, &Stream::work, Qt::QueuedConnection);
  }
  void work() {
    constexpr std::chrono::milliseconds kTurn{4};
    const QPointer<Stream> alive(this);
    const auto until = Clock::now() + kTurn;
    do {
      const std::function<void()> what = std::move(to_do_.front());
      to_do_.front() = [] {};  // it stands for what is at work: nobody else begins
      what();
      if (!alive) return;
      to_do_.pop_front();
    } while (!to_do_.empty() && Clock::now() < until);
    if (!to_do_.empty()) QMetaObject::invokeMethod(this, &Stream::work, Qt::QueuedConnection);
  }

  void respond(const nlohmann::json& id, const Result<nlohmann::json>& result) {
    if (open_) Q_EMIT received(QByteArray::fromStdString(encode_response(id, result)).trimmed());
  }

  void take(const QByteArray& line) {
    if (!open_) return;
    const auto request = decode_request({line.data(), static_cast<std::size_t>(line.size())});
    if (!request.ok()) return end({ErrorCode::kProtocol, "the fake was sent garbage"});
    core_->calls.push_back({request->method, request->params});
    if (core_->silent) return;
    if (request->method == "hello") {
      return respond(request->id, nlohmann::json{{"version", core_->version}, {"program", "atoll-agent"}});
    }
    const bool scripted = core_->methods.contains(request->method);
    if (request->method == "events.subscribe" && !scripted) return subscribe(*request);
    const auto method = core_->methods.find(request->method);
    if (method == core_->methods.end()) {
      return respond(request->id, Error{ErrorCode::kNotFound, fmt::format("no method '{}' here", request->method)});
    }
    const Method body = method->second;  // it may be changed meanwhile
    respond(request->id, body(request->params));
  }

  void subscribe(const RpcRequest& request) {
    const auto since = request.params.value("since", std::uint64_t{0});
    subscribed = true;
    const std::uint64_t first = core_->kept.empty() ? core_->last_seq + 1 : core_->kept.front().seq;
    respond(request.id, nlohmann::json{{"first", first}, {"last", core_->last_seq}});
    for (const Kept& event : core_->kept) {
      if (event.seq > since) deliver(event.line);
    }
  }

  const std::shared_ptr<Core> core_;
  std::deque<std::function<void()>> to_do_;
  bool open_ = false, over_ = false;
};

void FakeAgent::Core::can() {
  methods["state.get"] = [this](const auto&) { return state; };
  methods["rounds.list"] = [this](const auto& params) { return rounds_answer(params, state["run_id"], time); };
  methods["peers.list"] = [this](const auto&) { return peers_answer(state["run_id"]); };
  methods["checkpoints.list"] = [this](const auto&) { return checkpoints_answer(state["state_hash"], time); };
  methods["config.get"] = [](const auto&) { return settings_answer(); };
  methods["config.set"] = [](const auto& params) { return changed_setting_answer(params); };
  methods["logs.read"] = [this](const nlohmann::json& params) {
    const bool first = !params.contains("cursor");
    return nlohmann::json{{"lines", first ? log_lines() : nlohmann::json::array()},
                          {"cursor", fmt::format("c{}", calls.size())}};
  };
  methods["metrics.query"] = [this](const auto& params) {
    return metrics_answer(params, state["run_id"], history_points, time);
  };
  for (const char* method : {"check.run", "join", "invite.look"}) {
    methods[method] = [](const auto&) { return nlohmann::json{{"started", true}}; };
  }
  methods["join.cancel"] = [](const auto&) { return nlohmann::json::object(); };
  for (const auto& [method, wish] :
       {std::pair("pause", "pause"), std::pair("resume", "run"), std::pair("finish", "finish"),
        std::pair("stop", "stop"), std::pair("leave", "stop")}) {
    methods[method] = [this, wish = std::string(wish)](const auto&) {
      state["agent"]["wish"] = state["agent"]["followed"] = wish;
      return nlohmann::json{{"wish", wish}, {"kept", true}, {"at_stake", nullptr}};
    };
  }
  methods["diag.create"] = [](const nlohmann::json& params) {
    return nlohmann::json{{"file", params["file"]}, {"bytes", 12'345u}, {"entries", nlohmann::json::array()}};
  };
}

FakeAgent::FakeAgent() : core_(std::make_shared<Core>()) { core_->can(); }

OpenStream FakeAgent::open() const {
  return [core = core_] { return std::make_unique<Core::Stream>(core); };
}

void FakeAgent::answer(const std::string& method, const nlohmann::json& result) {
  core_->methods[method] = [result](const auto&) { return result; };
}
void FakeAgent::answer(const std::string& method, Method body) { core_->methods[method] = std::move(body); }
void FakeAgent::fail(const std::string& method, ErrorCode code, const std::string& message) {
  core_->methods[method] = [code, message](const auto&) { return Error{code, message}; };
}
void FakeAgent::forget(const std::string& method) { core_->methods.erase(method); }
void FakeAgent::fall_silent() { core_->silent = true; }
void FakeAgent::answer_again() { core_->silent = false; }

void FakeAgent::say(const nlohmann::json& changes) { core_->state.merge_patch(changes); }
const nlohmann::json& FakeAgent::state() const { return core_->state; }
void FakeAgent::become(const nlohmann::json& state) { core_->state = state; }

void FakeAgent::tell(const std::string& event, const nlohmann::json& data, double time) {
  core_->time = time > 0 ? time : core_->time + 1;
  const nlohmann::json params = {{"event", event}, {"seq", ++core_->last_seq}, {"time", core_->time}, {"data", data}};
  const QByteArray line = QByteArray::fromStdString(encode_event(params)).trimmed();
  core_->kept.push_back({core_->last_seq, line});
  if (core_->kept.size() > kMaxKept) core_->kept.pop_front();
  for (const QPointer<QObject>& object : core_->streams) {
    auto* stream = static_cast<Core::Stream*>(object.data());
    if (stream != nullptr && stream->is_open() && stream->subscribed) stream->deliver(line);
  }
}

// Of the trainer, which does not know of the agent.
void FakeAgent::tell_state(const std::string& event, const nlohmann::json& changes) {
  say(changes);
  nlohmann::json state = core_->state;
  state.erase("agent");
  tell(event, state);
}

void FakeAgent::step(double loss_nats) {
  const unsigned step = core_->state.value("inner_step", 0u), tokens = core_->state.value("tokens", 0u);
  tell_state("step", {{"inner_step", step + 1}, {"tokens", tokens + 636'300}, {"loss_nats", loss_nats}});
}

void FakeAgent::lose_events(unsigned count) {
  core_->last_seq += count;
  core_->kept.clear();
}

double FakeAgent::time() const { return core_->time; }

void FakeAgent::send_line(const QByteArray& line) {
  for (const QPointer<QObject>& object : core_->streams) {
    if (auto* stream = static_cast<Core::Stream*>(object.data())) stream->deliver(line);
  }
}

void FakeAgent::hang_up(const Error& why) {
  const auto streams = std::exchange(core_->streams, {});
  for (const QPointer<QObject>& object : streams) {
    if (auto* stream = static_cast<Core::Stream*>(object.data())) stream->end(why);
  }
}

void FakeAgent::refuse(const Error& why) { core_->refusal = why; }
void FakeAgent::welcome() { core_->refusal.reset(); }
void FakeAgent::set_version(int version) { core_->version = version; }

void FakeAgent::restart() {
  hang_up();
  core_->last_seq = 0;
  core_->kept.clear();
}

const std::vector<FakeAgent::Call>& FakeAgent::calls() const { return core_->calls; }

std::size_t FakeAgent::count(const std::string& method) const {
  return static_cast<std::size_t>(std::ranges::count(core_->calls, method, &Call::method));
}

nlohmann::json FakeAgent::last_params(const std::string& method) const {
  const auto found =
      std::find_if(core_->calls.rbegin(), core_->calls.rend(), [&](const Call& call) { return call.method == method; });
  return found == core_->calls.rend() ? nlohmann::json() : found->params;
}

std::size_t FakeAgent::connections() const {
  return static_cast<std::size_t>(std::ranges::count_if(core_->streams, [](const QPointer<QObject>& object) {
    const auto* stream = static_cast<const Core::Stream*>(object.data());
    return stream != nullptr && stream->is_open();
  }));
}

std::size_t FakeAgent::attempts() const { return core_->attempts; }
void FakeAgent::set_history(std::size_t points) { core_->history_points = points; }

}  // namespace atl::test
