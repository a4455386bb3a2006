// An agent in this process, whose trainer is a script; or a script beside a control socket that the test serves. Owned
// by a test; the agent runs on a thread of its own.
#pragma once

#include <sys/stat.h>

#include <QTemporaryDir>
#include <QtTest>
#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "app/agent/agent.h"
#include "app/agent/agent_config.h"
#include "net/base/file.h"
#include "net/control/control_client.h"
#include "net/control/control_server.h"
#include "net/control/island_state.h"

namespace atl {

inline constexpr std::chrono::seconds kLimit{20};  // for anything; a hang, not a slow machine

// What a trainer serves; its process is a script's.
class FakeTrainer final : public ControlService {
 public:
  Result<nlohmann::json> call(std::string_view method, const nlohmann::json&) override {
    if (method == "agent.alive") {
      IslandState state;
      state.state = IslandPhase::kTraining;
      state.round = 42;
      state.inner_step = ++steps;
      return state.to_json();
    }
    if (method == "pause") asked_to_pause = true;
    return nlohmann::json::object();
  }
  std::atomic<std::uint32_t> steps{0};
  std::atomic<bool> asked_to_pause{false};
};

class AgentFixture {
 public:
  explicit AgentFixture(bool joined = true, const std::string& script = "exec sleep 600") {
    std::ofstream(path("trainer.sh")) << "#!/bin/sh\necho started >> '" << path("starts").string() << "'\n"
                                      << script << "\n";
    ::chmod(path("trainer.sh").c_str(), 0755);
    JoinFile join;
    join.run_name = "gcide";
    if (joined && !save_join_file(home().island.join_file(), join).ok()) qFatal("no join file");
  }
  ~AgentFixture() { end(); }

  std::filesystem::path path(const std::string& name) const {
    return std::filesystem::path(directory_.path().toStdString()) / name;
  }
  AgentHome home() const { return agent_home_in(path("")); }

  Status start() {
    AgentOptions options;
    ATOLL_ASSIGN_OR_RETURN(const Config config, Config::load(config_sources(home())));
    ATOLL_RETURN_IF_ERROR(apply_config(config, options));
    options.home = home();
    options.read_config = [sources = config_sources(home())] { return Config::load(sources); };
    options.trainer = path("trainer.sh");
    options.supervisor.first_backoff = std::chrono::milliseconds(100);
    options.supervisor.end_within = std::chrono::seconds(10);
    ATOLL_ASSIGN_OR_RETURN(agent_, Agent::start(std::move(options)));
    ending_.emplace();
    thread_ = std::thread([this] { ended_ = agent_->run(*ending_); });
    return ok_status();
  }
  void end() {
    if (!thread_.joinable()) return;
    ending_->raise("the test is over");
    thread_.join();
    agent_.reset();
  }

  Result<nlohmann::json> call(const char* method, const nlohmann::json& params = nlohmann::json::object()) const {
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    ATOLL_ASSIGN_OR_RETURN(const auto client, ControlClient::connect(home().socket, deadline));
    return client->call(method, params, deadline);
  }
  nlohmann::json state() const {
    const auto state = call("state.get");
    return state.ok() ? *state : nlohmann::json{{"state", state.error().message}};
  }
  bool wait_until(const std::function<bool(const nlohmann::json&)>& condition) const {
    const Deadline deadline = Deadline::after(kLimit);
    while (!condition(state())) {
      if (deadline.expired()) {
        qWarning("state: %s", state().dump().c_str());
        return false;
      }
      QThread::msleep(20);
    }
    return true;
  }
  bool wait_for(const std::string& word) const {
    return wait_until([&](const nlohmann::json& now) { return now["state"] == word; });
  }
  pid_t trainer() const { return state().value("agent", nlohmann::json::object()).value("trainer_pid", 0); }
  std::ptrdiff_t starts() const {
    const auto text = read_file(path("starts"));
    return text.ok() ? std::count(text->begin(), text->end(), '\n') : 0;
  }

 private:
  QTemporaryDir directory_;
  std::unique_ptr<Agent> agent_;
  std::optional<AbortSignal> ending_;
  Status ended_;
  std::thread thread_;
};

}  // namespace atl
