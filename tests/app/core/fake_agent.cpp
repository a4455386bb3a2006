#include "tests/app/core/fake_agent.h"

#include <fmt/format.h>

#include <QPointer>
#include <algorithm>
#include <cmath>

#include "net/control/control_server.h"
#include "net/control/json_rpc.h"

namespace atl::test {
namespace {

constexpr std::size_t kMaxKept = 1024;
constexpr double kBeginning = 1'763'700'000;  // an evening in November 2025

nlohmann::json peer_json(const char* island, const char* name, const char* state, double rate) {
  return {{"island", island},
          {"name", name},
          {"address", "203.0.113.7:47001"},
          {"state", state},
          {"last_change", kBeginning},
          {"rtt_seconds", 0.032},
          {"bytes_per_second", rate},
          {"down_bytes_per_second", rate * 1.1},
          {"version", "atoll 0.1.0"},
          {"region", "eu-west"},
          {"retries", 0}};
}

nlohmann::json setting_json(const char* key, const char* value, const char* otherwise, const char* meaning) {
  return {{"key", key}, {"value", value}, {"default", otherwise}, {"origin", "default"}, {"meaning", meaning}};
}

double value_at(const std::string& name, double i) {
  if (name == "loss_nats") return 2 + 8 * std::exp(-i / 4000) + 0.15 * std::sin(i * 1.7);
  if (name == "validation_loss_nats") return 2.1 + 8 * std::exp(-i / 4000);
  if (name == "tokens_per_second") return 318'000 + 4'000 * std::sin(i / 40);
  if (name == "learning_rate") return 3e-4 * std::min(1.0, i / 500);
  if (name == "gradient_norm") return 0.6 + 0.3 * std::abs(std::sin(i * 0.9));
  if (name == "mfu") return 0.38 + 0.01 * std::sin(i / 90);
  if (name == "sync_seconds") return 38 + 6 * std::sin(i);
  return 50 + 20 * std::sin(i / 60);
}

}  // namespace

nlohmann::json training_state() {
  return {{"state", "training"},
          {"island", "isl-2mf4k7q3x"},
          {"name", "under the desk"},
          {"run_id", "run-1"},
          {"run_name", "gcide-demo"},
          {"pid", 4711},
          {"parameters", 1'234'567u},
          {"round", 42u},
          {"inner_step", 371u},
          {"inner_steps", 500u},
          {"loss_nats", 2.9141},
          {"validation_loss_nats", 3.0217},
          {"tokens_per_second", 318'150.0},
          {"next_sync_seconds", 250.0},
          {"islands_live", 7u},
          {"islands_total", 8u},
          {"last_sync_seconds", 38.0},
          {"accepted_round", 41u},
          {"tokens", 98'765'432u},
          {"bytes_sent", 1'900'000'000u},
          {"inner_seconds", 9200.0},
          {"sync_seconds", 800.0},
          {"outer_step", 42u},
          {"state_hash", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
          {"error", ""},
          {"mfu", 0.384},
          {"learning_rate", 3e-4},
          {"gradient_norm", 0.71},
          {"disk_free_bytes", 812e9},
          {"agent",
           {{"pid", 4700},
            {"version", "0.1.0"},
            {"wish", "run"},
            {"followed", "run"},
            {"since_unix_seconds", kBeginning},
            {"paused_until_unix_seconds", nullptr},
            {"seconds", 86'400.0},
            {"trainer_pid", 4711},
            {"taken_over", false},
            {"heard_seconds_ago", 0.4},
            {"restarts", 0u},
            {"restart_in_seconds", nullptr},
            {"last_exit", nullptr},
            {"warning", ""}}}};
}

nlohmann::json unjoined_state() {
  nlohmann::json state = training_state();
  for (const char* key : {"mfu", "learning_rate", "gradient_norm"}) state.erase(key);
  for (const char* key : {"island", "name", "run_id", "run_name", "state_hash"}) state[key] = "";
  for (const char* key : {"pid", "parameters", "round", "inner_step", "inner_steps", "islands_live", "islands_total",
                          "tokens", "bytes_sent", "outer_step"}) {
    state[key] = 0u;
  }
  for (const char* key : {"loss_nats", "tokens_per_second", "inner_seconds", "sync_seconds"}) state[key] = 0.0;
  for (const char* key : {"validation_loss_nats", "next_sync_seconds", "last_sync_seconds", "accepted_round"}) {
    state[key] = nullptr;
  }
  state["state"] = "unjoined";
  state["agent"]["trainer_pid"] = 0;
  state["agent"]["heard_seconds_ago"] = nullptr;
  return state;
}

nlohmann::json round_json(unsigned round, double began) {
  const auto phase = [](const char* name, double seconds, unsigned bytes) {
    return nlohmann::json{{"attempt", 1u}, {"name", name}, {"seconds", seconds}, {"bytes", bytes}};
  };
  return {{"round", round},
          {"began", began},
          {"ended", began + 288},
          {"loss_nats", value_at("loss_nats", round * 500.0)},
          {"validation_loss_nats", nullptr},
          {"tokens", 79'500'000u},
          {"bytes_sent", 1'900'000'000u},
          {"inner_seconds", 250.0},
          {"sync_seconds", value_at("sync_seconds", round)},
          {"islands", 7u},
          {"accepted", true},
          {"state_hash", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
          {"phases",
           {phase("wait", 3.1, 0), phase("connect", 0.2, 0), phase("quantise", 2.4, 0),
            phase("reduce_scatter", 15.2, 950'000'000), phase("all_gather", 14.6, 950'000'000), phase("commit", 0.5, 0),
            phase("apply", 1.9, 0)}}};
}

// ---- the agent

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
  Result<nlohmann::json> metrics(const nlohmann::json& params) const;
  nlohmann::json metric_points(const std::string& name, const std::string& axis, double from, double to,
                               std::size_t most) const;
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
  void later(std::function<void()> what) { QMetaObject::invokeMethod(this, std::move(what), Qt::QueuedConnection); }

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
  bool open_ = false, over_ = false;
};

void FakeAgent::Core::can() {
  methods["state.get"] = [this](const auto&) { return state; };
  methods["rounds.list"] = [this](const nlohmann::json& params) {
    nlohmann::json rounds = nlohmann::json::array();
    const unsigned limit = params.value("limit", 50u);
    unsigned next = std::min(params.value("before", 42u), 42u);
    for (; next > 0 && rounds.size() < limit; --next)
      rounds.push_back(round_json(next - 1, time - 300.0 * (43 - next)));
    return nlohmann::json{{"run", state["run_id"]}, {"rounds", rounds}, {"more", next > 0}};
  };
  methods["peers.list"] = [this](const auto&) {
    return nlohmann::json{
        {"run", state["run_id"]},
        {"peers",
         {peer_json("isl-aaaa", "basement", "up", 12.5e6), peer_json("isl-bbbb", "garage", "up", 5.5e6),
          peer_json("isl-cccc", "attic", "down", 11e6)}}};
  };
  methods["checkpoints.list"] = [this](const auto&) {
    const nlohmann::json checkpoint = {{"path", "/home/me/.local/share/atoll/checkpoint/outer.state"},
                                       {"outer_step", 42u},
                                       {"parameters", 1'234'567u},
                                       {"bytes", 9'876'624u},
                                       {"saved_at", time},
                                       {"state_hash", state["state_hash"]},
                                       {"whole", nullptr}};
    return nlohmann::json{{"checkpoints", {checkpoint}}};
  };
  methods["config.get"] = [](const auto&) {
    return nlohmann::json{{"values",
                           {setting_json("limits.upload", "none", "none", "The most that the all-reduce may send"),
                            setting_json("schedule.hours", "always", "always", "When to train, local time"),
                            setting_json("log.level", "info", "info", "How much is written to the log")}},
                          {"file", "/home/me/.config/atoll/config.toml"},
                          {"settings", "/home/me/.local/state/atoll/settings.json"}};
  };
  methods["config.set"] = [](const nlohmann::json& params) -> Result<nlohmann::json> {
    nlohmann::json value = setting_json("", "", "", "");
    value["key"] = params["key"];
    value["value"] = params["value"].is_null() ? nlohmann::json("") : params["value"];
    value["origin"] = "settings";
    return nlohmann::json{{"values", {value}}, {"file", ""}, {"settings", ""}};
  };
  methods["logs.read"] = [this](const nlohmann::json& params) {
    nlohmann::json lines = nlohmann::json::array();
    if (!params.contains("cursor")) {
      lines.push_back({{"source", "agent"},
                       {"time", "2026-11-21T21:36:32.125"},
                       {"level", "info"},
                       {"text", "2026-11-21T21:36:32.125 info agent started version=0.1.0"}});
      lines.push_back({{"source", "trainer"},
                       {"time", "2026-11-21T21:36:33.001"},
                       {"level", "warning"},
                       {"text", "2026-11-21T21:36:33.001 warning edge slow island=isl-bbbb"}});
    }
    return nlohmann::json{{"lines", lines}, {"cursor", fmt::format("c{}", calls.size())}};
  };
  methods["metrics.query"] = [this](const nlohmann::json& params) { return metrics(params); };
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

Result<nlohmann::json> FakeAgent::Core::metrics(const nlohmann::json& params) const {
  const std::string name = params.value("name", "");
  if (name.empty()) {
    return nlohmann::json{{"run", state["run_id"]},
                          {"names",
                           {"gradient_norm", "learning_rate", "loss_nats", "mfu", "sync_seconds", "tokens_per_second",
                            "validation_loss_nats"}}};
  }
  const std::string axis = params.value("axis", "time");
  nlohmann::json answer = metric_points(name, axis, params.value("from", -1e18), params.value("to", 1e18),
                                        params.value("max_points", 1000u));
  answer["run"] = state["run_id"];
  answer["name"] = name;
  answer["axis"] = axis;
  return answer;
}

// Pieces of the axis, as an agent makes them of what is more than `most`.
nlohmann::json FakeAgent::Core::metric_points(const std::string& name, const std::string& axis, double from, double to,
                                              std::size_t most) const {
  const auto points = static_cast<double>(history_points);
  const double scale = axis == "time" ? 1 : axis == "step" ? 1 : 636'300;
  const double offset = axis == "time" ? time - points + 1 : 0;
  const double first = std::max(0.0, std::ceil((from - offset) / scale));
  const double last = std::min(points - 1, std::floor((to - offset) / scale));
  nlohmann::json answer;
  for (const char* column : {"time", "step", "tokens", "count", "mean", "low", "high"}) {
    answer[column] = nlohmann::json::array();
  }
  const double total = last - first + 1;
  const double each = total > static_cast<double>(most) ? std::ceil(total / static_cast<double>(most)) : 1;
  answer["width"] = each > 1 ? each * scale : 0;
  for (double i = first; i <= last; i += each) {
    const double mean = value_at(name, i), spread = each > 1 ? 0.1 * std::abs(mean) : 0;
    answer["time"].push_back(time - points + 1 + i);
    answer["step"].push_back(i);
    answer["tokens"].push_back(i * 636'300);
    answer["count"].push_back(std::min(each, last - i + 1));
    answer["mean"].push_back(static_cast<float>(mean));
    answer["low"].push_back(static_cast<float>(mean - spread));
    answer["high"].push_back(static_cast<float>(mean + spread));
  }
  return answer;
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

// ---- commands

struct FakeCommands::Core {
  class Command;
  std::vector<std::pair<QStringList, Outcome>> outcomes;
  std::vector<CommandRequest> asked;
};

class FakeCommands::Core::Command final : public CommandRun {
 public:
  explicit Command(Outcome outcome) : outcome_(std::move(outcome)) {}

  void start() override {
    QMetaObject::invokeMethod(
        this,
        [this] {
          const QPointer<Command> alive(this);
          if (!outcome_.out.isEmpty()) Q_EMIT output(outcome_.out);
          if (alive && !outcome_.err.isEmpty()) Q_EMIT errors(outcome_.err);
          if (alive && !outcome_.hangs) finish(outcome_.exit_code);
        },
        Qt::QueuedConnection);
  }
  void interrupt() override {
    QMetaObject::invokeMethod(
        this, [this] { finish(130); }, Qt::QueuedConnection);
  }

 private:
  void finish(int exit_code) {
    if (!std::exchange(over_, true)) Q_EMIT ended(exit_code);
  }
  const Outcome outcome_;
  bool over_ = false;
};

FakeCommands::FakeCommands() : core_(std::make_shared<Core>()) {}

RunCommand FakeCommands::run() const {
  return [core = core_](const CommandRequest& request) {
    core->asked.push_back(request);
    Outcome outcome{.exit_code = 1, .err = "atoll: the test knows no such command\n"};
    qsizetype longest = -1;
    for (const auto& [beginning, answer] : core->outcomes) {
      const bool fits = request.arguments.mid(0, beginning.size()) == beginning;
      if (!fits || beginning.size() < longest) continue;
      longest = beginning.size();
      outcome = answer;
    }
    return std::make_unique<Core::Command>(outcome);
  };
}

void FakeCommands::answer(const QStringList& beginning, const Outcome& outcome) {
  core_->outcomes.emplace_back(beginning, outcome);
}

const std::vector<CommandRequest>& FakeCommands::asked() const { return core_->asked; }

}  // namespace atl::test
