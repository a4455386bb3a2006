#include "tests/process/agent_service.h"

#include <QtCore/QThread>

#include "net/control/control_client.h"

namespace atl::test {

AgentService::AgentService(const IslandHome& home, const QProcessEnvironment& environment)
    : home_(agent_home_in(home.directory)), output_(home.directory.string() + ".agent-output") {
  agent_.setProcessEnvironment(environment);
  look();
}

void AgentService::look() {
  if (!wanted_ || agent_.state() != QProcess::NotRunning) return;
  agent_.setProcessChannelMode(QProcess::MergedChannels);
  agent_.setStandardOutputFile(QString::fromStdString(output_.string()), QIODevice::Append);
  agent_.start(QString(ATOLL_BIN_DIR) + "/atoll",
               {"agent", "--home", QString::fromStdString(home_.island.directory.string())});
  if (!agent_.waitForStarted()) qFatal("atoll agent did not start: %s", qPrintable(agent_.errorString()));
}

int AgentService::end() {
  wanted_ = false;
  if (agent_.state() == QProcess::NotRunning) return -1;
  agent_.terminate();
  if (!agent_.waitForFinished(100'000)) agent_.kill();
  agent_.waitForFinished();
  return agent_.exitStatus() == QProcess::NormalExit ? agent_.exitCode() : -1;
}

void AgentService::kill() {
  agent_.kill();
  agent_.waitForFinished();
}

Result<nlohmann::json> AgentService::call(const char* method, const nlohmann::json& params) const {
  const Deadline deadline = Deadline::after(kAgentLimit);
  ATOLL_ASSIGN_OR_RETURN(const auto client, ControlClient::connect(home_.socket, deadline));
  return client->call(method, params, deadline);
}

nlohmann::json AgentService::state() const {
  const auto state = call("state.get");
  return state.ok() ? *state : nlohmann::json::object();
}

bool AgentService::wait_until(const std::function<bool(const nlohmann::json&)>& condition, std::chrono::seconds limit) {
  nlohmann::json now;
  const auto holds = [&] {
    look();
    now = state();
    return now.contains("agent") && condition(now);
  };
  if (wait_for(holds, limit)) return true;
  qWarning("state: %s", now.dump().c_str());
  return false;
}

bool AgentService::wait_for_training(pid_t dead) {
  return wait_until([dead](const nlohmann::json& now) {
    return now["agent"]["trainer_pid"] > 0 && now["agent"]["trainer_pid"] != dead &&
           now["pid"] == now["agent"]["trainer_pid"] && now["accepted_round"].is_number();
  });
}

bool AgentService::wait_for_rounds(std::uint32_t rounds) {
  std::optional<std::uint32_t> begin;
  return wait_until([&](const nlohmann::json& now) {
    if (!now["accepted_round"].is_number()) return false;
    const auto accepted = now["accepted_round"].get<std::uint32_t>();
    if (!begin) begin = accepted;
    return accepted >= *begin + rounds;
  });
}

bool wait_for(const std::function<bool()>& condition, std::chrono::seconds limit) {
  const Deadline deadline = Deadline::after(limit);
  while (!condition()) {
    if (deadline.expired()) return false;
    QThread::msleep(50);
  }
  return true;
}

}  // namespace atl::test
