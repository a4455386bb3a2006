// `atoll agent` of this build as a process, under a stand-in for the service's supervisor. One thread. Methods abort
// the test program when the agent cannot be started.
#pragma once

#include <QtCore/QProcess>
#include <chrono>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "net/base/result.h"
#include "net/control/home.h"

namespace atl::test {

inline constexpr std::chrono::seconds kAgentLimit{120};  // for anything; a hang, not a slow machine

class AgentService {
 public:
  // Starts it on a home that `atoll join` made.
  explicit AgentService(const IslandHome& home,
                        const QProcessEnvironment& environment = QProcessEnvironment::systemEnvironment());
  ~AgentService() { end(); }

  // Starts it again when it is gone, as a service is.
  void look();
  // SIGTERM, and no new one; the exit code, or -1.
  int end();
  void kill();
  void stay_dead() {
    wanted_ = false;
    kill();
  }

  Result<nlohmann::json> call(const char* method, const nlohmann::json& params = nlohmann::json::object()) const;
  nlohmann::json state() const;  // an empty object when it does not answer
  // Looks after the agent until the island's state is so; false when the time is over.
  bool wait_until(const std::function<bool(const nlohmann::json&)>& condition,
                  std::chrono::seconds limit = kAgentLimit);
  // Until a trainer contributes; another one than the process `dead`, of whose end the agent may not know yet.
  bool wait_for_training(pid_t dead = -1);
  // Until `rounds` more rounds than now were committed with this island's work in them.
  bool wait_for_rounds(std::uint32_t rounds);
  pid_t trainer() const { return state().value("agent", nlohmann::json::object()).value("trainer_pid", 0); }
  pid_t pid() const { return static_cast<pid_t>(agent_.processId()); }
  const AgentHome& home() const { return home_; }
  std::filesystem::path output() const { return output_; }  // what it prints, which a service's journal would hold

 private:
  const AgentHome home_;
  const std::filesystem::path output_;
  QProcess agent_;
  bool wanted_ = true;
};

// Polls until it is so; false when the time is over.
bool wait_for(const std::function<bool()>& condition, std::chrono::seconds limit = kAgentLimit);

}  // namespace atl::test
